"""One supervised process: how it is started, when it is started again, how it is ended."""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_log = logging.getLogger("promptlake.supervisor")

_PR_SET_PDEATHSIG = 1
_FIRST_DELAY_S = 0.5
_MAX_DELAY_S = 30.0
_STEADY_AFTER_S = 60.0


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Program:
    """What to run. `gate` must say yes before each start; a program with `once` is done when it ends well."""

    name: str
    command: list[str]
    env: Mapping[str, str]
    fds: tuple[int, ...] = ()
    once: bool = False
    gate: Callable[[], bool] = _always


@dataclass(eq=False, slots=True)
class Process:
    """A program and the life of its process: waiting, running, waiting to be restarted, or done."""

    program: Program
    log: Path
    child: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    next_start_at: float = 0.0
    restarts: int = 0
    last_exit: int | None = None
    done: bool = False
    _delay_s: float = field(default=_FIRST_DELAY_S)

    @property
    def running(self) -> bool:
        return self.child is not None

    def start_if_due(self, now: float) -> bool:
        """Start the process when its time has come and its gate is open; True when it was started."""
        if self.done or self.running or now < self.next_start_at or not self.program.gate():
            return False
        parent = os.getpid()
        with self.log.open("ab") as output:
            self.child = subprocess.Popen(  # noqa: S603  # our own commands
                self.program.command,
                env=dict(self.program.env),
                # neither the folder of the caller nor any other is written by being the current one
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=self.program.fds,
                # a group of its own: Ctrl-C reaches the supervisor alone, which ends the others in order
                start_new_session=True,
                preexec_fn=lambda: _prepare(parent),  # noqa: PLW1509  # one thread here
            )
        self.started_at = now
        return True

    def reap(self, now: float) -> bool:
        """Notice that the process has ended and plan its restart; True when it had."""
        if self.child is None or (code := self.child.poll()) is None:
            return False
        self._end_group()
        self.child, self.last_exit = None, code
        if self.program.once and code == 0:
            self.done = True
            return True
        if now - self.started_at > _STEADY_AFTER_S:
            self._delay_s = _FIRST_DELAY_S
        self.next_start_at = now + self._delay_s
        self.restarts += 1
        _log.warning(
            "%s ended (%s); it starts again in %.1f s, see %s",
            self.program.name,
            _describe(code),
            self._delay_s,
            self.log,
        )
        self._delay_s = min(_MAX_DELAY_S, 2 * self._delay_s)
        return True

    def ask_to_end(self) -> None:
        """Send SIGTERM."""
        if self.child is not None:
            self.child.terminate()

    def end(self, deadline: float) -> None:
        """Wait for the process until `deadline` (monotonic), then kill what is left of its group."""
        if self.child is None:
            return
        try:
            self.child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            _log.warning("%s did not end in time and is killed", self.program.name)
        self._end_group()
        self.child.wait()
        self.child = None

    def describe(self) -> dict[str, Any]:
        """Return the process's state for the state file."""
        state = "done" if self.done else "running" if self.running else "waiting"
        return {
            "name": self.program.name,
            "state": state,
            "pid": None if self.child is None else self.child.pid,
            "restarts": self.restarts,
            "last_exit": self.last_exit,
        }

    def _end_group(self) -> None:
        if self.child is not None:
            try:
                os.killpg(self.child.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                # Nobody is left (macOS answers EPERM for a group of zombies).
                return


def _prepare(parent: int) -> None:
    """Make signals mean what they usually do, and (on Linux) die with the parent, however that ends."""
    # A shell's background job ignores SIGINT, and Dagster treats SIGTERM as it finds SIGINT treated.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _describe(code: int) -> str:
    return f"exit status {code}" if code >= 0 else signal.Signals(-code).name
