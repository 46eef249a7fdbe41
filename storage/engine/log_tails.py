"""The unflushed logs of a workspace as columns: each is spread once a process, not once a question."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from storage.domain.errors import Unavailable
from storage.engine.catalog import Catalog, Connection
from storage.engine.log_patches import Patches
from storage.engine.log_reader import LogMoment
from storage.engine.log_sql import PIECE_BYTES, arrow_tail, spread
from storage.engine.rows.log_deletions import select_gone
from storage.engine.rows.log_patches import select_patches
from storage.engine.rows.log_segments import LOGS, flushed_through, select_segments
from storage.engine.rows.log_tail import TailRow, select_tail_piece

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

MOST_BYTES = 268_435_456
"""So much is kept for the next question."""
LIMIT_BYTES = 536_870_912
_READ_BYTES = 8 * 1_048_576
"""So much is read at once."""
_MOST_CHUNKS = 64
_LARGE_BYTES = 32_768


@dataclass(frozen=True, slots=True)
class Tail:
    """Columns as `log_sql.spread` makes them, by id; ids are None when there is no log."""

    columns: "pa.Table"
    first_id: int | None
    last_id: int | None

    @property
    def is_large(self) -> bool:
        """Say whether its logs are large on average."""
        return int(self.columns.nbytes) >= _LARGE_BYTES * max(1, len(self.columns))


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
            moment, columns = _read(connection, logs, workspace_id, kept)
            if len(columns):
                kept.through = max(kept.through, columns["id"][-1].as_py())
            kept.columns = columns
            if columns.nbytes > MOST_BYTES:  # flushes are behind: it is read again rather than kept
                kept.columns, kept.through = None, 0
        ids = columns["id"]
        if not len(ids):
            return moment, Tail(columns, None, None)
        return moment, Tail(columns, ids[0].as_py(), ids[-1].as_py())


def _read(
    connection: "duckdb.DuckDBPyConnection", logs: Catalog, workspace_id: int, kept: _Kept
) -> "tuple[LogMoment, pa.Table]":
    """Add what is new to the columns that are kept, and leave out what is in files by now.

    Rows are read some at a time, and spread when the read has ended: while one is open, the write-ahead log
    cannot begin anew. The last read is the moment; what was read before and is in files by then is left out.
    """
    through = kept.through
    parts = [_made(connection, [])] if kept.columns is None else [kept.columns]
    while True:
        with logs.read() as reading:
            rows, is_all = select_tail_piece(reading, workspace_id, after=through, max_bytes=_READ_BYTES)
            flushed = flushed_through(reading)
            moment = _moment(reading, workspace_id) if is_all else None
        if rows:
            through = rows[-1].id
            parts.append(_made(connection, rows))
        parts = [_after(flushed, part) for part in parts]
        if sum(part.nbytes for part in parts) > LIMIT_BYTES:
            raise Unavailable("Too many logs wait for their flush: the runs of Dagster are behind")
        if moment is not None:
            return moment, _joined(parts)


def _moment(reading: Connection, workspace_id: int) -> LogMoment:
    return LogMoment(
        select_segments(reading, workspace_id=workspace_id, kind=LOGS),
        [],
        Patches.of(select_patches(reading, workspace_id)),
        select_gone(reading, workspace_id),
    )


def _after(flushed: int, columns: "pa.Table") -> "pa.Table":
    """Leave out what is in files by now: it stands at the beginning."""
    ids = columns["id"]
    if not len(ids) or ids[0].as_py() > flushed:
        return columns
    at = bisect_right(range(len(ids)), flushed, key=lambda place: ids[place].as_py())
    # a copy: a slice would keep all of it in memory
    return _copied(columns.slice(at))


def _made(connection: "duckdb.DuckDBPyConnection", piece: Sequence[TailRow]) -> "pa.Table":
    connection.register("fresh_logs_", arrow_tail(piece))
    try:
        return connection.sql(f"{spread('fresh_logs_')} ORDER BY id").to_arrow_table()
    finally:
        connection.unregister("fresh_logs_")


def _joined(tables: Sequence["pa.Table"]) -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415

    joined = pa.concat_tables(tables)
    if joined["id"].num_chunks <= _MOST_CHUNKS + joined.nbytes // PIECE_BYTES:
        return joined
    return _copied(joined)


def _copied(columns: "pa.Table") -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415

    whole = columns.combine_chunks()
    return pa.Table.from_batches(_cut(whole.to_batches()[0]) if len(whole) else (), columns.schema)


def _cut(whole: "pa.RecordBatch") -> Iterator["pa.RecordBatch"]:
    """Cut rows where their texts come to the bytes of a piece."""
    import pyarrow.compute as pc  # noqa: PLC0415

    texts = zip(*(pc.binary_length(whole[name]).to_pylist() for name in ("input", "output")), strict=True)
    start = size = 0
    for at, lengths in enumerate(texts):
        if at > start and size + sum(lengths) > PIECE_BYTES:
            yield whole.slice(start, at - start)
            start, size = at, 0
        size += sum(lengths)
    yield whole.slice(start)
