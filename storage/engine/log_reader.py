"""Logs of a workspace, segments and tail taken at one moment: each log exactly once."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from storage.domain.log_columns import LOG_COLUMNS
from storage.domain.log_deletions import NOTHING_GONE, Gone
from storage.domain.log_patches import apply_patch
from storage.domain.request_logs import to_us
from storage.engine.catalog import Catalog
from storage.engine.data_root import DataRoot
from storage.engine.log_body import decode_body
from storage.engine.log_damage import damage_told
from storage.engine.log_patches import NONE, Patches
from storage.engine.log_sql import LOG_NAMES, arrow_ids, duck, present
from storage.engine.rows.log_deletions import is_gone, select_gone
from storage.engine.rows.log_patches import PatchRow, find_patch, select_patches
from storage.engine.rows.log_segments import LOGS, Segment, find_segment_of, select_segments
from storage.engine.rows.log_tail import TailRow, find_tail_row, select_tail
from storage.engine.rows.scores import select_scores_of

if TYPE_CHECKING:
    import pyarrow as pa

    from storage.engine.log_lake import LogLake

LogBatches: TypeAlias = "Generator[pa.RecordBatch]"

_JSON = ("parameters", "prompt_input_variables", "input", "output")


@dataclass(frozen=True, slots=True)
class StoredLog:
    """A log as it is stored: its fields as in a body of the tail (times in microseconds), and its scores."""

    id: int
    created_us: int
    fields: dict[str, Any]
    scores: dict[str, int]


@dataclass(frozen=True, slots=True)
class LogMoment:
    """Where the logs of a workspace stood at one moment; `gone` are in segments or tail, but deleted."""

    segments: list[Segment]
    tail: list[TailRow]
    patches: Patches = NONE
    gone: Gone = NOTHING_GONE


def read_moment(logs: Catalog, workspace_id: int) -> LogMoment:
    """Take manifest, tail and patches in one read."""
    with logs.read() as connection:
        return LogMoment(
            select_segments(connection, workspace_id=workspace_id, kind=LOGS),
            select_tail(connection, workspace_id),
            Patches.of(select_patches(connection, workspace_id)),
            select_gone(connection, workspace_id),
        )


@damage_told()
def find_stored_log(
    lake: "LogLake", logs: Catalog, data: DataRoot, workspace_id: int, log_id: int
) -> StoredLog | None:
    """Find one log, wherever it is now."""
    with logs.read() as connection:
        if is_gone(connection, workspace_id, log_id):
            return None
        row = find_tail_row(connection, workspace_id, log_id)
        segment = None if row else find_segment_of(connection, workspace_id, log_id)
        scores = select_scores_of(connection, workspace_id, log_id)
        patch = find_patch(connection, workspace_id, log_id)
    if row is not None:
        fields = decode_body(row.body)
        return StoredLog(row.id, row.created_us, _patched(fields, patch), scores)
    if segment is None:
        return None
    with lake.glance() as connection_:
        found = connection_.execute(
            f"SELECT {LOG_NAMES} FROM read_parquet(?) WHERE id = ?",  # noqa: S608
            [str(data.path(segment.key)), log_id],
        ).fetchone()
    return None if found is None else _stored(found, scores, patch)


@damage_told()
def has_log(lake: "LogLake", logs: Catalog, data: DataRoot, workspace_id: int, log_id: int) -> bool:
    """Say whether a workspace has a log, wherever it is now; costs no file where ids have no gaps."""
    with logs.read() as connection:
        if is_gone(connection, workspace_id, log_id):
            return False
        if find_tail_row(connection, workspace_id, log_id) is not None:
            return True
        segment = find_segment_of(connection, workspace_id, log_id)
    if segment is None:
        return False
    if segment.rows == segment.last_id - segment.first_id + 1:
        return True
    with lake.glance() as connection_:
        found = connection_.execute(
            "SELECT 1 FROM read_parquet(?) WHERE id = ?", [str(data.path(segment.key)), log_id]
        ).fetchone()
    return found is not None


@damage_told()
def count_logs(logs: Catalog, data: DataRoot, workspace_id: int, through: int) -> int:
    """Count the logs of a workspace up to an id, deleted ones left out."""
    moment = read_moment(logs, workspace_id)
    count = sum(row.id <= through and not moment.gone.has(row.id) for row in moment.tail)
    with duck(threads=1) as connection:
        connection.register("deleted_logs", arrow_ids(moment.gone.ids))
        for segment in moment.segments:
            if segment.first_id > through:
                break
            if segment.last_id <= through and not moment.gone.touches(segment.first_id, segment.last_id):
                count += segment.rows
                continue
            found = connection.execute(
                f"SELECT count(*) FROM read_parquet(?) WHERE id <= ? AND {present(moment.gone)}",  # noqa: S608
                [str(data.path(segment.key)), through],
            ).fetchone()
            count += found[0] if found else 0
    return count


@damage_told()
def find_first_since(logs: Catalog, data: DataRoot, workspace_id: int, since_us: int) -> int | None:
    """The first log in segments that was recorded at or after a moment; after the last one where none was.

    None: nothing is in segments.
    """
    with logs.read() as connection:
        named = select_segments(connection, workspace_id=workspace_id, kind=LOGS)
    for segment in named:
        if segment.to_us is not None and segment.to_us < since_us:
            continue
        with duck(threads=1) as connection_:
            found = connection_.execute(
                "SELECT min(id) FROM read_parquet(?) WHERE created_at >= make_timestamptz(?)",
                [str(data.path(segment.key)), since_us],
            ).fetchone()
        if found and found[0] is not None:
            return int(found[0])
    return named[-1].last_id + 1 if named else None


def _patched(fields: dict[str, Any], patch: PatchRow | None) -> dict[str, Any]:
    return fields if patch is None else apply_patch(fields, patch.patch)


def _stored(values: tuple[Any, ...], scores: dict[str, int], patch: PatchRow | None) -> StoredLog:
    fields = dict(zip((column.name for column in LOG_COLUMNS), values, strict=True))
    log_id, created_at = fields.pop("id"), fields.pop("created_at")
    del fields["latency_ms"]
    for name in _JSON:
        fields[name] = decode_body(fields[name].encode())
    for name in ("request_start_time", "request_end_time"):
        fields[name] = to_us(fields[name])
    return StoredLog(log_id, to_us(created_at), _patched(fields, patch), scores)
