"""Small writes of many threads, committed together: they wait for the disk once, and take one turn."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from storage.engine.catalog import Catalog, Connection

Value = TypeVar("Value")

MOST_AT_ONCE = 64


@dataclass(eq=False, slots=True)
class _Write:
    work: Callable[[Connection], Any]
    value: Any = None
    error: Exception | None = None
    done: bool = field(default=False)


class GroupCommit:
    """Whoever comes while a group commits is of the next group, which the first of it commits for all."""

    def __init__(self, database: Catalog) -> None:
        self._database = database
        self._waiting: list[_Write] = []
        self._queue = threading.Lock()
        self._turn = threading.Lock()

    def run(self, work: Callable[[Connection], Value]) -> Value:
        """Do some work in a transaction; return what it returns once that is durable.

        What the work raises undoes it alone, and is raised here.

        Raises:
            Unavailable: the database cannot be written; nothing was changed.
        """
        write = _Write(work)
        with self._queue:
            self._waiting.append(write)
        with self._turn:
            while not write.done:
                with self._queue:
                    group, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
                self._commit(group)
        if write.error is not None:
            raise write.error
        return cast("Value", write.value)

    def _commit(self, group: list[_Write]) -> None:
        try:
            with self._database.transaction() as connection:
                for write in group:
                    _attempt(connection, write)
        except Exception as error:  # noqa: BLE001 - each caller raises it: nothing of the group was kept
            for write in group:
                write.error = write.error or error
        for write in group:
            write.done = True


def _attempt(connection: Connection, write: _Write) -> None:
    try:
        with connection.begin_nested():
            write.value = write.work(connection)
    except Exception as error:  # noqa: BLE001 - its caller raises it; the others of the group go on
        write.error = error
