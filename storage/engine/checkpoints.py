"""Moves a write-ahead log into its database from a thread of its own, so that no commit waits for it."""

import logging
import sqlite3
import threading
from contextlib import closing

log = logging.getLogger("promptlake.logs")

# So much is written between two checkpoints.
_EVERY_BYTES = 16_777_216
# Beyond so many pages the log is begun anew: that holds the writer up, but only for what is left by then.
_MOST_PAGES = 8_192


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
    if pages > _MOST_PAGES:
        connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
