"""One DuckDB a process for questions of request logs: bounded memory, few at once, footers of files kept."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING
from uuid import UUID

from storage.domain.errors import Unavailable
from storage.engine.facet_sql import register_facets
from storage.engine.log_tails import Tails
from storage.engine.lru import Lru

if TYPE_CHECKING:
    import duckdb

MEMORY = "256MB"
AT_ONCE = 2
WAIT_S = 30.0
_MOST_COUNTS = 200_000


class LogLake:
    """Opened by the first question; never carried over a fork. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._turns = BoundedSemaphore(AT_ONCE)
        self.tails = Tails()
        self._root: duckdb.DuckDBPyConnection | None = None
        self.counts: Lru[tuple[UUID, str], int] = Lru(_MOST_COUNTS)
        """How many logs of an immutable file a condition holds for."""

    @contextmanager
    def cursor(self) -> Iterator["duckdb.DuckDBPyConnection"]:
        """Take a turn: a connection whose relations nobody else sees.

        Raises:
            Unavailable: others take too long, or the disk where large answers spill is full.
        """
        if not self._turns.acquire(timeout=WAIT_S):
            raise Unavailable("Too many searches are at work")
        try:
            with self.glance() as cursor:
                yield cursor
        finally:
            self._turns.release()

    @contextmanager
    def glance(self) -> Iterator["duckdb.DuckDBPyConnection"]:
        """As `cursor`, without a turn: for what reads next to nothing.

        Raises:
            Unavailable: there is too little memory.
        """
        import duckdb  # noqa: PLC0415

        cursor = self._opened().cursor()
        try:
            yield cursor
        except duckdb.OutOfMemoryException as error:
            raise Unavailable("The search needs more memory or disk than there is") from error
        finally:
            cursor.close()

    def _opened(self) -> "duckdb.DuckDBPyConnection":
        import duckdb  # noqa: PLC0415

        with self._lock:
            if self._root is None:
                root = duckdb.connect(
                    config={
                        "threads": 2,
                        "memory_limit": MEMORY,
                        "autoinstall_known_extensions": False,
                        "autoload_known_extensions": False,
                        # not the working folder, which may be anybody's
                        "temp_directory": str(Path(tempfile.gettempdir()) / "promptlake-spill"),
                    }
                )
                root.execute("SET GLOBAL TimeZone = 'UTC'")
                root.execute("SET GLOBAL parquet_metadata_cache = true")
                root.execute("SET GLOBAL preserve_insertion_order = false")
                register_facets(root)
                self._root = root
            return self._root

    def close(self) -> None:
        with self._lock:
            if self._root is not None:
                self._root.close()
                self._root = None
