"""Files of logs and scores: written whole before they are named, checked against what the manifest says."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import TypeVar
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from storage.domain.log_files import FOLDER
from storage.engine.data_root import DataRoot, file_sha256
from storage.engine.facet_sql import register_facets, with_facets
from storage.engine.log_patches import RELATION, Patches
from storage.engine.log_sql import arrow_tail, duck, quoted, spread, spread_scores
from storage.engine.rows.log_patches import PatchRow
from storage.engine.rows.log_segments import LOGS, SCORES, ScoreRow, Segment
from storage.engine.rows.log_tail import TailRow

Row = TypeVar("Row", TailRow, ScoreRow)

ROW_GROUP_ROWS = 4096
ROW_GROUP_BYTES = 8_388_608
"""Of larger logs fewer go into a row group: who reads one of them holds its neighbours in memory."""
LARGE_ROW_GROUP_BYTES = 1_048_576
"""Where logs have megabytes, each stands almost alone: several times its bytes are needed to look at it."""
LARGE_LOG_BYTES = 131_072
TOLD = "promptlake"
"""The key of a file's own metadata under which it says which ids it stands for, and when it was made."""
_SCORE_QUERY = f"{spread_scores('rows_')} ORDER BY change"


def write_log_segments(
    data: DataRoot,
    rows: Sequence[TailRow],
    *,
    new_id: Callable[[], UUID],
    now_us: int,
    patches: Sequence[PatchRow] = (),
) -> list[Segment]:
    """Write rows of the tail with what patches say of them, one file per workspace; nothing names them yet.

    Raises:
        Unavailable: the disk is full.
    """
    written = []
    with duck() as connection:
        register_facets(connection)
        for workspace_id, some in _by_workspace(rows):
            connection.register("rows_", arrow_tail(some))
            ids = (some[0].id, some[-1].id)
            query = _log_query(connection, [row for row in patches if row.workspace_id == workspace_id])
            segment = write_segment(
                connection,
                data,
                query,
                blank_segment(new_id(), workspace_id, LOGS, ids, now_us),
                row_bytes=sum(len(row.body) for row in some) // len(some),
            )
            recorded = [row.created_us for row in some]
            written.append(replace(segment, from_us=min(recorded), to_us=max(recorded)))
    return written


def _log_query(connection: duckdb.DuckDBPyConnection, rows: Sequence[PatchRow]) -> str:
    select = spread("rows_")
    if rows:
        patches = Patches.of(rows)
        connection.register(RELATION, patches.arrow())
        select = patches.joined(select)
    return f"{with_facets(select)} ORDER BY id"


def write_score_segments(
    data: DataRoot, rows: Sequence[ScoreRow], *, new_id: Callable[[], UUID], now_us: int
) -> list[Segment]:
    """Write changed scores, one file per workspace; nothing names the files yet.

    Raises:
        Unavailable: the disk is full.
    """
    written = []
    with duck() as connection:
        for workspace_id, some in _by_workspace(rows):
            connection.register("rows_", arrow_scores(some))
            ids = (some[0].change, some[-1].change)
            blank = blank_segment(new_id(), workspace_id, SCORES, ids, now_us)
            written.append(write_segment(connection, data, _SCORE_QUERY, blank))
    return written


def _by_workspace(rows: Sequence[Row]) -> list[tuple[int, list[Row]]]:
    # sorting is stable: within a workspace the order of ids stays
    of = attrgetter("workspace_id")
    return [(workspace_id, list(some)) for workspace_id, some in groupby(sorted(rows, key=of), of)]


def blank_segment(
    segment_id: UUID, workspace_id: int, kind: str, ids: tuple[int, int], now_us: int, *, folder: str = ""
) -> Segment:
    """A segment that is about to be written: its place is known, its size is not."""
    name = f"{kind}-{ids[0]}-{ids[1]}-{segment_id.hex}.parquet"
    key = "/".join(part for part in (FOLDER, str(workspace_id), folder, name) if part)
    return Segment(segment_id, workspace_id, kind, key, *ids, 0, 0, "", now_us)


def write_segment(
    connection: duckdb.DuckDBPyConnection,
    data: DataRoot,
    query: str,
    blank: Segment,
    *,
    instead_of: tuple[int, int] | None = None,
    row_bytes: int = 0,
) -> Segment:
    """Write what a query answers as the file of a segment; nothing names it yet.

    `instead_of`: the first and last id of the files that it replaces; else its own.
    `row_bytes`: how large a log is.

    Raises:
        Unavailable: the disk is full.
    """
    with data.writing(blank.key) as path:
        first_id, last_id = instead_of or (blank.first_id, blank.last_id)
        told = json.dumps({"first_id": first_id, "last_id": last_id, "made_us": blank.created_us})
        group_bytes = ROW_GROUP_BYTES if row_bytes < LARGE_LOG_BYTES else LARGE_ROW_GROUP_BYTES
        options = (
            f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP_ROWS}, "
            f"ROW_GROUP_SIZE_BYTES {group_bytes}, "
            f"KV_METADATA {{{TOLD}: {quoted(told)}}})"
        )
        copied = connection.execute(f"COPY ({query}) TO {quoted(str(path))} {options}").fetchone()
        size, digest = path.stat().st_size, file_sha256(path)
    return replace(blank, rows=int(copied[0]) if copied else 0, bytes=size, sha256=digest)


def arrow_scores(rows: Sequence[ScoreRow]) -> pa.Table:
    return pa.table(
        {
            "request_id": pa.array([row.request_id for row in rows], pa.int64()),
            "name": pa.array([row.name for row in rows], pa.string()),
            "score": pa.array([row.score for row in rows], pa.int64()),
            "updated_us": pa.array([row.updated_us for row in rows], pa.int64()),
            "change": pa.array([row.change for row in rows], pa.int64()),
        }
    )


def count_rows(data: DataRoot, segment: Segment) -> int:
    """How many rows a file's footer tells of; 0 when it is missing or cannot be read."""
    try:
        return int(pq.read_metadata(data.path(segment.key)).num_rows)
    except (OSError, pa.ArrowException):
        return 0


def find_quick_fault(data: DataRoot, segment: Segment) -> str | None:
    """Compare a file's size and footer with its row of the manifest; a sentence as `find_fault` has it."""
    path = data.path(segment.key)
    if not path.exists():
        return "the file is missing"
    if path.stat().st_size != segment.bytes:
        return f"the file has {path.stat().st_size} bytes, the manifest says {segment.bytes}"
    if count_rows(data, segment) != segment.rows:
        return "the file's footer tells of other rows than the manifest"
    return None


def find_fault(data: DataRoot, segment: Segment) -> str | None:
    """Compare a file with its row of the manifest; a sentence says what is wrong with it, None: nothing."""
    path = data.path(segment.key)
    fault = find_quick_fault(data, segment)
    if fault is not None:
        return fault
    if file_sha256(path) != segment.sha256:
        return "the file's checksum is not the manifest's"
    number = "id" if segment.kind == LOGS else "change"
    with duck(threads=1) as connection:
        found = connection.execute(
            f"SELECT count(*), min({number}), max({number}) FROM read_parquet(?)",  # noqa: S608
            [str(path)],
        ).fetchone()
    if found != (segment.rows, segment.first_id, segment.last_id):
        return f"the file holds rows, first and last id {found}, the manifest says otherwise"
    return None
