"""Connections to a SQL database: reads see one moment, writes are one immediate transaction."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from storage.domain.errors import Unavailable

_BUSY_MS = 30_000
_SWIFT_CHECKPOINT_PAGES = 20_000

Connection = sa.Connection
"""What a verb holds while its transaction is open; only engine code looks inside."""


class Catalog:
    """One database by URL; safe to share between threads, never between processes by fork.

    A Catalog that is not `durable` commits without waiting for the disk: a power failure may undo its last
    transactions, each as a whole; a kill of the process undoes none. `page_bytes` counts for a SQLite file
    that is made now; an older one keeps its own.
    """

    def __init__(self, url: str, *, durable: bool = True, page_bytes: int = 4096) -> None:
        self.url = sa.make_url(url)
        if self.url.get_backend_name() == "sqlite":
            Path(self.url.database or "").parent.mkdir(parents=True, exist_ok=True)
        self.engine = sa.create_engine(self.url, pool_size=16, max_overflow=48)
        if self.engine.dialect.name == "sqlite":
            sa.event.listen(self.engine, "connect", partial(_set_page_size, page_bytes))
            sa.event.listen(self.engine, "connect", _configure_sqlite if durable else _configure_swift_sqlite)
            sa.event.listen(self.engine, "begin", _begin_sqlite)
        self._writer = self.engine.execution_options(promptlake_begin="BEGIN IMMEDIATE")

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Open one read: all its queries see the same moment."""
        with _plain_errors(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """Open one write: all of it is durable when the block ends, or nothing is.

        Raises:
            Unavailable: the disk is full or the database cannot be written; nothing was changed.
        """
        with _plain_errors(), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Callable[[], AbstractContextManager[sa.Connection]]]:
        """Keep one connection for many writes; yield what opens a transaction on it, as `transaction` does.

        Its commits never stop to checkpoint: a `Checkpointer` does that beside them. After a failure leave
        the block and open another: the connection is not trusted any more.
        """
        with _plain_errors(), self._writer.connect() as connection:
            if self.sqlite_path is not None:
                _set_pragma(connection, "wal_autocheckpoint=0")
            try:
                yield lambda: _transaction(connection)
            finally:
                # it is not handed to others who do wait for their checkpoints
                connection.invalidate()

    def watch(self) -> "Watch":
        """Open a watch over what others commit."""
        return Watch(self.sqlite_path)

    @property
    def sqlite_path(self) -> str | None:
        """The file of a SQLite database; None for another."""
        return self.url.database if self.engine.dialect.name == "sqlite" else None

    def close(self) -> None:
        self.engine.dispose()


class Watch:
    """Tells for some microseconds whether anybody committed since it was asked last; used by one thread.

    Where the database cannot tell (None), the answer is always yes.
    """

    def __init__(self, sqlite_path: str | None) -> None:
        self._connection = None if sqlite_path is None else sqlite3.connect(sqlite_path, isolation_level=None)
        self._seen: int | None = None

    def changed(self) -> bool:
        """Tell whether there may be something new; the first answer is yes."""
        if self._connection is None:
            return True
        try:
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        except sqlite3.OperationalError:  # locked for a moment: whoever reads next finds out
            return True
        seen, self._seen = self._seen, int(version)
        return self._seen != seen

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


@contextmanager
def _transaction(connection: sa.Connection) -> Iterator[sa.Connection]:
    with _plain_errors(), connection.begin():
        yield connection


def _set_page_size(
    page_bytes: int, connection: DBAPIConnection, _entry: ConnectionPoolEntry | None = None
) -> None:
    # before the write-ahead log is chosen, which fixes it
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA page_size={page_bytes:d}")
    cursor.close()


def _configure_sqlite(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    # The driver must not open transactions on its own: `begin` below says how they start.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout={_BUSY_MS}",
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        "temp_store=MEMORY",
        # what was deleted must not be found in the file later; many builds of SQLite do so anyway
        "secure_delete=ON",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _configure_swift_sqlite(connection: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
    _configure_sqlite(connection, entry)
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous=NORMAL")
    # Those who wait for the disk anyway move the log into the database; this is for when there are none.
    cursor.execute(f"PRAGMA wal_autocheckpoint={_SWIFT_CHECKPOINT_PAGES}")
    cursor.close()


def _set_pragma(connection: sa.Connection, pragma: str) -> None:
    # below SQLAlchemy, which would open a transaction first
    driver = connection.connection.dbapi_connection
    if driver is not None:
        driver.cursor().execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    execute_bare(connection, connection.get_execution_options().get("promptlake_begin", "BEGIN"))


def execute_bare(connection: sa.Connection, sql: str, parameters: Sequence[Any] = ()) -> Any:
    """Run a statement of a positional driver; return its first row, if it has any.

    For the few that run a thousand times a second: SQLAlchemy would take longer over one than SQLite does.
    """
    with closing(connection.connection.cursor()) as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchone()


# A deferred transaction that turns into a write fails at once when another process wrote meanwhile;
# an immediate one waits. Full disks and locked files are the operator's to mend, not the caller's.
_PASSING = ("disk is full", "disk I/O error", "database is locked", "readonly database", "unable to open")


@contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except (OperationalError, sqlite3.OperationalError) as error:
        if _is_passing(error.orig if isinstance(error, OperationalError) else error):
            raise Unavailable("The catalog cannot be written now (disk full or busy).") from error
        raise


def _is_passing(error: Any) -> bool:
    return isinstance(error, sqlite3.OperationalError) and any(word in str(error) for word in _PASSING)


def new_no(result: sa.CursorResult[Any]) -> int:
    """The number that an insert of one row was given."""
    key = result.inserted_primary_key
    if key is None:
        raise RuntimeError("the insert gave no key")
    return int(key[0])
