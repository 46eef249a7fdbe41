"""One worker process as its owner sees it: started bare, asked by frames, ended by SIGKILL."""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from storage.domain.errors import InvalidConfig, LimitReached, Unavailable, Unguarded
from storage.domain.walls import Wall, fallen
from storage.engine.sandbox.channel import WorkerGone
from storage.engine.sandbox.inside.frames import FrameTooLarge, decode, encode, pack
from storage.engine.sandbox.kinds import Kind
from storage.engine.sandbox.launch import launch

_START_S = 30.0
_VALUE = b'{"value":'  # how an answer begins that is neither a problem nor a limit


class Worker:
    """A process that evaluates for one tenant at a time; not to be shared by threads."""

    def __init__(self, kind: Kind) -> None:
        """Start the process; the thread that calls must live as long as the worker may.

        (The kernel ends a process when the *thread* that started it ends, if asked to tie the two.)
        """
        self.kind = kind
        self.tenant: int | None = None
        self.answered = 0
        self.busy_s = 0.0
        self.at_rest = True  # no frame is under way
        self._walls: tuple[Wall, ...] | None = None
        self._process, self._channel = launch(kind)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ready(self) -> bool:
        """Whether it lives and has said nothing that it was not asked."""
        return self._process.poll() is None and (self._walls is None or self._channel.silent)

    @property
    def spent(self) -> bool:
        """Whether it has answered its share, or might meet its limit of CPU time within a request."""
        return self.answered >= self.kind.requests or self.busy_s > self.kind.cpu_s / 2

    def walls(self) -> tuple[Wall, ...]:
        """The walls as the worker has tried them, waited for at the first call.

        Raises:
            Unavailable: it did not come up.
        """
        if self._walls is None:
            try:
                hello = decode(self._channel.receive(monotonic() + _START_S))
                self._walls = (*(Wall(**wall) for wall in hello["walls"]), self._killable())
            except (WorkerGone, TimeoutError, FrameTooLarge, ValueError, TypeError, KeyError) as error:
                self.end()
                raise Unavailable(f"A sandbox worker ({self.kind.name}) did not start") from error
        return self._walls

    def check_walls(self) -> None:
        """Check that every needed wall stands.

        Raises:
            Unguarded: one does not; the worker has been ended.
        """
        missing = fallen(self.walls())
        if missing:
            self.end()
            reasons = "; ".join(f"{wall.name}: {wall.detail}" for wall in missing)
            raise Unguarded(
                f"Nothing of this kind ({self.kind.name}) is evaluated here, because the sandbox does not "
                f"hold on this machine ({reasons}). `promptlake doctor` lists its walls."
            )

    def ask(self, request: Any) -> Any:
        """Have the evaluator answer; after a limit was met the worker has ended.

        Raises:
            Refused: the expression is at fault; carries the evaluator's problem.
            LimitReached: it met a limit of time, memory or size.
            InvalidConfig: the request itself is over the size of a frame.
        """
        return self._value_of(self._heard(self._exchange(self._framed(request))))

    def ask_rows(self, header: dict[str, Any], parts: Sequence[bytes]) -> bytes:
        """Have the evaluator answer a packed request; return the answer as it was spelled.

        Raises:
            FrameTooLarge: the request is over the size of a frame; nothing was sent.
            Refused, LimitReached: as `ask`.
        """
        body = self._exchange(pack(header, parts, self.kind.max_frame_bytes))
        if body.startswith(_VALUE):
            return body[len(_VALUE) : -1]
        self._value_of(self._heard(body))
        raise self.distrust()

    def distrust(self) -> LimitReached:
        """End the worker, because what it said cannot be read; return what to raise."""
        return self._over("output")

    def _exchange(self, frame: bytes) -> bytes:
        started = monotonic()
        self.at_rest = False
        try:
            self._channel.send(frame, started + self.kind.wall_s)
            body = self._channel.receive(started + self.kind.wall_s)
        except TimeoutError:
            raise self._over("time") from None
        except WorkerGone:
            self._process.wait()
            by_system = self._process.returncode in {-signal.SIGKILL, -signal.SIGXCPU}
            raise self._over("system" if by_system else "memory") from None
        except FrameTooLarge:
            raise self._over("output") from None
        self.busy_s += monotonic() - started
        self.answered += 1
        self.at_rest = True
        return body

    def _heard(self, body: bytes) -> Any:
        try:
            return decode(body)
        except (ValueError, RecursionError):
            raise self._over("output") from None

    def end(self) -> None:
        """Kill the process and forget it."""
        if self._channel.closed:
            return
        self._channel.close()
        # one that may not be killed was asked nothing (see `_killable`) and ends by itself now
        with suppress(PermissionError):
            self._process.kill()
        self._process.wait()

    def _framed(self, request: Any) -> bytes:
        try:
            return encode(request, self.kind.max_frame_bytes)
        except FrameTooLarge as error:
            raise InvalidConfig(f"The expression and its values are too large: {error}") from error
        except RecursionError as error:
            raise InvalidConfig("The values are nested too deeply") from error

    def _value_of(self, answer: Any) -> Any:
        # the worker belongs to the tenant by now: nothing that it says is taken on trust
        match answer:
            case {"value": value}:
                return value
            case {"problem": dict() as problem}:
                if problem.get("limit"):
                    self.answered = self.kind.requests  # its memory may be in pieces: the next is a fresh one
                raise Refused(problem)
            case {"limit": str() as limit} if limit in _SENTENCES:
                raise self._over(limit)
        raise self._over("output")

    def _over(self, limit: str) -> LimitReached:
        self.end()
        return LimitReached(limit, _SENTENCES[limit].format(kind=self.kind, mb=self.kind.memory_bytes >> 20))

    def _killable(self) -> Wall:
        """A worker that has changed its user could outlive every limit if its owner may not kill it."""
        try:
            os.kill(self.pid, 0)
        except PermissionError:
            return Wall("end", False, "this process may not end its worker: CAP_KILL is missing")
        except ProcessLookupError:
            pass
        return Wall("end", True, "can be ended by its owner at any moment")


class Refused(Exception):
    """The evaluator refuses the expression; `problem` is what it says about it, unchecked."""

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__("refused by the evaluator")
        self.problem = problem


_SENTENCES = {
    "time": "it ran for more than {kind.wall_s:g} s and was stopped",
    "memory": "it ended its worker, most often by asking for more than {mb} MB of memory",
    "system": "the system ended it, most often after more than {kind.cpu_s} s of CPU time",
    "output": "its result is over the largest size",
    "recursion": "it calls itself too deeply",
    "evaluator": "its evaluator failed on it",
}
