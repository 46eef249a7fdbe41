"""One DuckDB a process for questions of request logs: bounded memory, few at once, footers of files kept."""

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from threading import Lock, Timer
from typing import TYPE_CHECKING
from uuid import UUID

from storage.domain.errors import Unavailable
from storage.engine.facet_sql import register_facets
from storage.engine.few_at_once import FewAtOnce
from storage.engine.log_hints import Kept
from storage.engine.log_tails import Tails
from storage.engine.log_tally import Tallies
from storage.engine.lru import Lru

if TYPE_CHECKING:
    import duckdb

MEMORY = "256MB"
AT_ONCE = 2
MOST_WAITING = 16
WAIT_S = 30.0
LIMIT_S = 60.0
_STEPS_BACK = 5
_MOST_COUNTS = 200_000
# each takes some 430 bytes
_MOST_TOLD = 50_000


class LogLake:
    """Opened by the first question; never carried over a fork. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._turns = FewAtOnce("searches", at_once=AT_ONCE, most_waiting=MOST_WAITING, wait_s=WAIT_S)
        self.tails = Tails()
        self.tallies = Tallies()
        self._root: duckdb.DuckDBPyConnection | None = None
        self.counts: Lru[tuple[UUID, str, int], int] = Lru(_MOST_COUNTS)
        """How many logs of an immutable file a condition holds for."""
        self.told = Kept(_MOST_TOLD, attrgetter("weight"))

    @contextmanager
    def cursor(self, *, limit_s: float | None = LIMIT_S) -> Iterator["duckdb.DuckDBPyConnection"]:
        """Take a turn: a connection whose relations nobody else sees, for some seconds (None: without end).

        Raises:
            Unavailable: too many wait, others or this one take too long, or the disk where large answers
                spill is full.
        """
        with self._turns.turn(), self.glance() as cursor, _limited(cursor, limit_s):
            yield cursor

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
        with self._lock:
            if self._root is None:
                # the threads that DuckDB starts have the priority of the one that opens it
                with ThreadPoolExecutor(1, "lake", _step_back) as pool:
                    self._root = pool.submit(_connect).result()
            return self._root

    def close(self) -> None:
        with self._lock:
            if self._root is not None:
                self._root.close()
                self._root = None


def _connect() -> "duckdb.DuckDBPyConnection":
    import duckdb  # noqa: PLC0415

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
    # the first question starts threads, too
    root.execute("SET GLOBAL TimeZone = 'UTC'")
    root.execute("SET GLOBAL parquet_metadata_cache = true")
    root.execute("SET GLOBAL preserve_insertion_order = false")
    register_facets(root)
    return root


def _step_back() -> None:
    """Let logging go first: DuckDB's own threads may, as they never hold the lock of the interpreter."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + _STEPS_BACK)


@contextmanager
def _limited(cursor: "duckdb.DuckDBPyConnection", limit_s: float | None) -> Iterator[None]:
    import duckdb  # noqa: PLC0415

    if limit_s is None:
        yield
        return
    timer = Timer(limit_s, cursor.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    except duckdb.InterruptException as error:
        raise Unavailable(f"The search took longer than {limit_s:g} seconds; ask for less") from error
    finally:
        timer.cancel()
