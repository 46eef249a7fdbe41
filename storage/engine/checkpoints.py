"""Moves a write-ahead log into its database from a thread of its own, so that no commit waits for it."""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing

log = logging.getLogger("promptlake.logs")

# So much is written between two checkpoints.
_EVERY_BYTES = 16_777_216
# Beyond so many pages the log is begun anew. That holds the writer up until the last reader has left it, so
# it is given up after some milliseconds and tried again; beyond many more it waits as long as it takes.
_MOST_PAGES = 8_192
_FAR_TOO_MANY_PAGES = 4 * _MOST_PAGES
_TRIES, _TRY_MS, _REST_S = 20, 5, 0.02


class Checkpointer:
    """Checkpoints one SQLite file as it is written; `path` None (another database) does nothing."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._written = 0
        self._due = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="log-checkpoint", daemon=True)
        if path is not None:
            self._thread.start()

    def wrote(self, size: int) -> None:
        """Note that `size` bytes were committed; the writer's thread calls this."""
        self._written += size
        if self._written >= _EVERY_BYTES:
            self._written = 0
            self._due.set()

    def close(self) -> None:
        self._closed = True
        self._due.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while self._due.wait() and not self._closed:
            self._due.clear()
            try:
                with closing(sqlite3.connect(str(self._path), isolation_level=None)) as connection:
                    _checkpoint(connection)
            except sqlite3.OperationalError as error:
                # Nothing is lost: what is committed stays in the log, and the next time tries again.
                log.warning("a checkpoint of the log database failed: %s", error)


def _checkpoint(connection: sqlite3.Connection) -> None:
    _, pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if pages > _FAR_TOO_MANY_PAGES:
        _begin_anew(connection)
    elif pages > _MOST_PAGES:
        _try(connection, _begin_anew)


def empty_log(path: str | None) -> bool:
    """Move a write-ahead log into its database and cut it off: it holds what has been deleted since.

    Gives up after some tries where others read and write all the time; their next checkpoint begins it anew.
    """
    if path is None:
        return True
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            return _try(connection, _cut_off)
    except sqlite3.OperationalError as error:
        log.warning("the log database's write-ahead log could not be emptied: %s", error)
    return False


def _try(connection: sqlite3.Connection, what: Callable[[sqlite3.Connection], bool]) -> bool:
    """Try some times, for some milliseconds each; say whether it was done."""
    connection.execute(f"PRAGMA busy_timeout={_TRY_MS:d}")
    for _ in range(_TRIES):
        if what(connection):
            return True
        time.sleep(_REST_S)
    return False


def _begin_anew(connection: sqlite3.Connection) -> bool:
    """Say whether it was possible: no writer and no reader was in the way."""
    return _is_done(connection, "RESTART")


def _cut_off(connection: sqlite3.Connection) -> bool:
    return _is_done(connection, "TRUNCATE")


def _is_done(connection: sqlite3.Connection, mode: str) -> bool:
    busy, _, _ = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
    return not busy
