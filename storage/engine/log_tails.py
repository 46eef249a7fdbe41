"""The unflushed logs of a workspace as columns: each is spread once a process, not once a question."""

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from storage.engine.catalog import Catalog
from storage.engine.log_patches import Patches
from storage.engine.log_reader import LogMoment
from storage.engine.log_sql import arrow_tail, spread
from storage.engine.rows.log_deletions import select_gone
from storage.engine.rows.log_patches import select_patches
from storage.engine.rows.log_segments import LOGS, flushed_through, select_segments
from storage.engine.rows.log_tail import select_tail

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

MOST_BYTES = 268_435_456
_MOST_CHUNKS = 64


@dataclass(frozen=True, slots=True)
class Tail:
    """Columns as `log_sql.spread` makes them, by id; ids are None when there is no log."""

    columns: "pa.Table"
    first_id: int | None
    last_id: int | None


@dataclass(slots=True)
class _Kept:
    lock: Lock = field(default_factory=Lock)
    columns: "pa.Table | None" = None
    through: int = 0


class Tails:
    """What is kept of the tails; ids are given in the order of commits, so what is new has a higher id."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[int, _Kept] = {}

    def read_moment(
        self, connection: "duckdb.DuckDBPyConnection", logs: Catalog, workspace_id: int
    ) -> tuple[LogMoment, Tail]:
        """Take manifest, tail, patches and deletions in one read; the moment's own tail stays empty."""
        with self._lock:
            kept = self._kept.setdefault(workspace_id, _Kept())
        with kept.lock:
            with logs.read() as reading:
                flushed = flushed_through(reading)
                moment = LogMoment(
                    select_segments(reading, workspace_id=workspace_id, kind=LOGS),
                    [],
                    Patches.of(select_patches(reading, workspace_id)),
                    select_gone(reading, workspace_id),
                )
                fresh = select_tail(reading, workspace_id, after=kept.through)
            columns = _unflushed(kept.columns, flushed)
            if fresh or columns is None:
                connection.register("fresh_logs_", arrow_tail(fresh))
                made = connection.sql(f"{spread('fresh_logs_')} ORDER BY id").to_arrow_table()
                connection.unregister("fresh_logs_")
                columns = made if columns is None else _joined(columns, made)
            kept.through = max(kept.through, fresh[-1].id if fresh else 0)
            kept.columns = columns
            if columns.nbytes > MOST_BYTES:  # flushes are behind: it is read again rather than kept
                kept.columns, kept.through = None, 0
        ids = columns["id"]
        if not len(ids):
            return moment, Tail(columns, None, None)
        return moment, Tail(columns, ids[0].as_py(), ids[-1].as_py())


def _unflushed(columns: "pa.Table | None", flushed: int) -> "pa.Table | None":
    """Leave out what is in files by now: it stands at the beginning."""
    if columns is None or not len(columns) or columns["id"][0].as_py() > flushed:
        return columns
    low, high = 0, len(columns)
    while low < high:
        middle = (low + high) // 2
        if columns["id"][middle].as_py() > flushed:
            high = middle
        else:
            low = middle + 1
    # a copy: a slice would keep all of it in memory
    return columns.slice(low).combine_chunks() if low < len(columns) else columns.slice(0, 0).combine_chunks()


def _joined(columns: "pa.Table", made: "pa.Table") -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415

    joined = pa.concat_tables([columns, made])
    return joined.combine_chunks() if joined["id"].num_chunks > _MOST_CHUNKS else joined
