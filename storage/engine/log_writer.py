"""The one who writes the tail: takes submissions from sockets, commits what has gathered, then answers.

It is a process of its own (or a thread, where there is just one process): while it waits for the disk, those
who read and check requests go on, and none of them shares an interpreter's lock with it.
"""

import logging
import selectors
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field

from storage.domain.errors import Unavailable
from storage.domain.log_pace import held_back_s
from storage.engine.catalog import Catalog, Connection
from storage.engine.checkpoints import Checkpointer
from storage.engine.log_wire import Result, Submissions, pack_outcome
from storage.engine.rows.log_segments import last_tail_id, trim_tail, waiting_tail_bytes
from storage.engine.rows.log_tail import Submission, append_group

log = logging.getLogger("promptlake.logs")

# What is read of a caller at once: about what a socket holds.
_READ_BYTES = 262_144
# Flushed rows that are removed together with a group, at most so often: about 12,000 a second.
_TRIM_ROWS, _TRIM_APART_S = 256, 0.02
# While nothing is logged, what a flush leaves is looked for so often, until nothing is left.
_TRIM_REST_S = 1.0
# A caller that does not take its outcomes for so long has died badly.
_SEND_WITHIN_S = 10.0
# Once told to stop, callers that are still there get so long to end.
_LINGER_S = 6.0


@dataclass(eq=False, slots=True)
class _Caller:
    socket: socket.socket
    submissions: Submissions = field(default_factory=Submissions)


_Group = list[tuple[_Caller, int, Submission]]


class LogWriter:
    """Writes for `callers` and all who connect to `listener`, until told to stop and the last has gone."""

    def __init__(
        self,
        logs: Catalog,
        listener: socket.socket | None,
        callers: Sequence[socket.socket] = (),
        *,
        flush_bytes: int,
    ) -> None:
        self._tail = _Tail(logs)
        self._flush_bytes = flush_bytes
        self._listener = listener
        self._callers = 0
        self._stop_by: float | None = None
        self._piece = memoryview(bytearray(_READ_BYTES))
        self._wake, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._woken, selectors.EVENT_READ)
        if listener is not None:
            self._selector.register(listener, selectors.EVENT_READ)
        for caller in callers:
            self._welcome(caller)

    def stop(self) -> None:
        """Ask the writer to end once its callers have ended; from any thread or signal handler."""
        self._wake.send(b"x")

    def run(self) -> None:
        """Write what comes; remove what was flushed meanwhile, also when nothing comes any more."""
        try:
            while not self._ended():
                group = self._gather()
                if group:
                    _answer(group, self._tail.write([submission for _, _, submission in group]), self._drop)
                    self._let_flush_catch_up()
                elif self._tail.holds_rows:
                    self._tail.trim()
        finally:
            self._tail.close()
            self._selector.close()
            self._wake.close()
            self._woken.close()

    def _let_flush_catch_up(self) -> None:
        pause_s = held_back_s(self._tail.waiting_bytes, self._flush_bytes)
        if pause_s:
            time.sleep(pause_s)

    def _ended(self) -> bool:
        return self._stop_by is not None and (not self._callers or time.monotonic() > self._stop_by)

    def _gather(self) -> _Group:
        """Wait for what comes; return the submissions that are whole."""
        pauses_s = [_TRIM_REST_S] if self._tail.holds_rows else []
        if self._stop_by is not None:
            pauses_s.append(max(0.0, self._stop_by - time.monotonic()))
        group: _Group = []
        for key, _ in self._selector.select(min(pauses_s, default=None)):
            if key.fileobj is self._listener:
                self._accept(self._listener)
            elif key.fileobj is self._woken:
                self._woken.recv(1)
                self._stop_by = time.monotonic() + _LINGER_S
            else:
                self._read(key.data, group)
        return group

    def _accept(self, listener: socket.socket) -> None:
        with suppress(BlockingIOError):
            caller, _ = listener.accept()
            self._welcome(caller)

    def _welcome(self, caller: socket.socket) -> None:
        caller.settimeout(_SEND_WITHIN_S)
        self._selector.register(caller, selectors.EVENT_READ, _Caller(caller))
        self._callers += 1

    def _read(self, caller: _Caller, group: _Group) -> None:
        try:
            size = caller.socket.recv_into(self._piece)
        except OSError:
            size = 0
        if not size:
            self._drop(caller)
            return
        pieces = caller.submissions.feed(self._piece[:size])
        group.extend((caller, number, submission) for number, submission in pieces)

    def _drop(self, caller: _Caller) -> None:
        if caller.socket.fileno() >= 0:
            self._selector.unregister(caller.socket)
            caller.socket.close()
            self._callers -= 1


def _answer(group: _Group, results: Sequence[Result], drop: Callable[[_Caller], None]) -> None:
    said: dict[_Caller, bytearray] = {}
    for (caller, number, _), result in zip(group, results, strict=True):
        said.setdefault(caller, bytearray()).extend(pack_outcome(number, result))
    for caller, outcomes in said.items():
        try:
            caller.socket.sendall(outcomes)
        except OSError:
            log.warning("%d bytes of outcomes could not be told: a caller is gone", len(outcomes))
            drop(caller)


class _Tail:
    """Commits groups on one connection that is kept while it is good."""

    def __init__(self, logs: Catalog) -> None:
        self._logs = logs
        self._kept = ExitStack()
        self._begin: Callable[[], AbstractContextManager[Connection]] | None = None
        self._checkpointer = Checkpointer(logs.sqlite_path)
        self._trimmed_at = 0.0
        # what an earlier process left is looked for, too
        self.holds_rows = True
        # as of the last time that rows were trimmed
        self.waiting_bytes = 0

    def write(self, group: Sequence[Submission]) -> Sequence[Result]:
        """Commit a group; return what became of each, which is durable."""
        try:
            with self._transaction() as connection:
                outcomes = append_group(connection, group)
                if time.monotonic() - self._trimmed_at > _TRIM_APART_S:
                    trim_tail(connection, _TRIM_ROWS)
                    self.waiting_bytes = waiting_tail_bytes(connection)
                    self._trimmed_at = time.monotonic()
        except Exception as error:  # noqa: BLE001 - callers hear that nothing was logged, the writer lives on
            log.error("%d submissions were refused: %s", len(group), self._give_up(error))  # noqa: TRY400
            return [Unavailable("The log database cannot be written now; nothing was logged.")] * len(group)
        self.holds_rows = True
        self._checkpointer.wrote(sum(submission.size for submission in group))
        return outcomes

    def trim(self) -> None:
        """Remove some of what was flushed; notice when the tail is empty."""
        try:
            with self._transaction() as connection:
                removed = trim_tail(connection, 8 * _TRIM_ROWS)
                self.holds_rows = removed > 0 or last_tail_id(connection) > 0
        except Exception as error:  # noqa: BLE001 - nobody waits for it; it is tried again
            log.error("flushed logs stay in the tail: %s", self._give_up(error))  # noqa: TRY400

    def _transaction(self) -> AbstractContextManager[Connection]:
        if self._begin is None:
            self._begin = self._kept.enter_context(self._logs.writing())
        return self._begin()

    def _give_up(self, error: Exception) -> str:
        """Trust the connection no more; return what may be said of the error, which may quote logs."""
        self._begin = None
        self._kept.close()
        return error.message if isinstance(error, Unavailable) else type(error).__name__

    def close(self) -> None:
        self._kept.close()
        self._checkpointer.close()
