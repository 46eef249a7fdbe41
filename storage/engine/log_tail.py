"""The durable tail: one thread appends logs in groups; whoever waits is told after the group's commit."""

import asyncio
import logging
import threading
from collections.abc import Sequence
from typing import Protocol

from storage.domain.errors import PromptlakeError, Unavailable
from storage.engine.catalog import Catalog
from storage.engine.checkpoints import Checkpointer
from storage.engine.rows.log_tail import Entry, append_group

log = logging.getLogger("promptlake.logs")

MAX_GROUP = 256
MAX_WAITING = 4096
MAX_WAITING_BYTES = 67_108_864

Result = int | PromptlakeError
_Group = list[tuple[Entry, asyncio.Future[int]]]


class LogWriter(Protocol):
    """Takes logs one by one; local where this process writes the tail, remote where it hands them over."""

    async def append(self, entry: Entry) -> int:
        """Write a log durably and return its id (of the first one when its idempotency key repeats).

        Raises:
            Unavailable: nothing is known to be written; the caller may try again.
            Conflict: the idempotency key was used for another request.
        """
        ...

    async def close(self) -> None: ...


class LocalLogWriter:
    """Appends to the log database from one thread: what gathers while a group commits is the next group."""

    def __init__(
        self,
        logs: Catalog,
        *,
        max_waiting: int = MAX_WAITING,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self._logs = logs
        self._max_waiting = max_waiting
        self._max_waiting_bytes = max_waiting_bytes
        self._loop = asyncio.get_running_loop()
        self._waiting: _Group = []
        self._waiting_bytes = 0
        self._closed = False
        self._wake = threading.Condition()
        self._checkpointer = Checkpointer(logs.sqlite_path)
        self._thread = threading.Thread(target=self._run, name="log-tail", daemon=True)
        self._thread.start()

    async def append(self, entry: Entry) -> int:
        future: asyncio.Future[int] = self._loop.create_future()
        with self._wake:
            if self._closed or not self._thread.is_alive():
                raise Unavailable("The service is stopping; nothing was logged.", retry_after_s=1)
            if self._waiting and (
                len(self._waiting) >= self._max_waiting
                or self._waiting_bytes + len(entry.body) > self._max_waiting_bytes
            ):
                raise Unavailable("Too many logs wait to be written; nothing was logged.", retry_after_s=1)
            self._waiting.append((entry, future))
            self._waiting_bytes += len(entry.body)
            if len(self._waiting) == 1:
                self._wake.notify()
        return await future

    async def close(self) -> None:
        """Write what waits, then stop."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        await asyncio.to_thread(self._thread.join)
        await asyncio.to_thread(self._checkpointer.close)

    def _run(self) -> None:
        group = self._next_group()
        while group is not None:
            try:
                with self._logs.writing() as begin:
                    while group is not None:
                        entries = [entry for entry, _ in group]
                        with begin() as connection:
                            outcomes = append_group(connection, entries)
                        self._tell(group, outcomes)
                        self._checkpointer.wrote(sum(len(entry.body) for entry in entries))
                        group = self._next_group()
            except Exception as error:  # noqa: BLE001 - callers hear that nothing was logged, the thread lives on
                self._refuse(group, error)
                group = self._next_group()

    def _refuse(self, group: _Group | None, error: Exception) -> None:
        if group is None:  # all were told before the connection was given back
            return
        why = error.message if isinstance(error, Unavailable) else type(error).__name__
        log.error("%d logs were refused: %s", len(group), why)
        refusal = Unavailable("The log database cannot be written now; nothing was logged.")
        self._tell(group, [refusal] * len(group))

    def _tell(self, group: _Group, results: Sequence[Result]) -> None:
        answered = [(future, result) for (_, future), result in zip(group, results, strict=True)]
        try:
            self._loop.call_soon_threadsafe(_answer, answered)
        except RuntimeError:  # the loop is closed: nobody waits any more
            log.warning("%d logs were written whose callers are gone", len(group))

    def _next_group(self) -> _Group | None:
        with self._wake:
            while not self._waiting:
                if self._closed:
                    return None
                self._wake.wait()
            group, self._waiting = self._waiting[:MAX_GROUP], self._waiting[MAX_GROUP:]
            self._waiting_bytes -= sum(len(entry.body) for entry, _ in group)
            return group


def _answer(answered: Sequence[tuple[asyncio.Future[int], Result]]) -> None:
    for future, result in answered:
        if future.done():  # its caller went away
            continue
        if isinstance(result, PromptlakeError):
            future.set_exception(result)
        else:
            future.set_result(result)
