"""Rows of the log database as files of logs and scores say them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from storage.engine.catalog import Connection
from storage.engine.log_schema import log_companions, log_scores, log_segments, log_state
from storage.engine.rows.log_segments import ScoreRow, Segment, insert_segments

_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class LogState:
    """Where the tail stands: the next id, and up to where logs and scores are in files."""

    next_id: int = 1
    flushed_through: int = 0
    score_change: int = 0
    scores_through: int = 0


def read_state(connection: Connection) -> LogState:
    columns = [log_state.c[name] for name in LogState.__dataclass_fields__]
    row = connection.execute(sa.select(*columns)).first()
    return LogState() if row is None else LogState(*row)


def write_state(connection: Connection, state: LogState) -> None:
    values = asdict(state)
    if connection.execute(log_state.update().values(values)).rowcount == 0:
        first = {"only": 1, "appended_bytes": 0, "flushed_bytes": 0}
        connection.execute(log_state.insert().values(first | values))


def write_manifest(connection: Connection, segments: Sequence[Segment]) -> None:
    """Name these files and no others; what was made of others is forgotten."""
    connection.execute(log_segments.delete())
    insert_segments(connection, segments)
    orphaned = log_companions.c.segment_id.not_in(sa.select(log_segments.c.id))
    connection.execute(log_companions.delete().where(orphaned))


def insert_missing_scores(connection: Connection, rows: Sequence[ScoreRow]) -> int:
    """Add the scores that the database does not know; return how many."""
    count = 0
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        known = sa.select(log_scores.c.request_id, log_scores.c.name).where(
            (log_scores.c.workspace_id == some[0].workspace_id)
            & log_scores.c.request_id.in_([row.request_id for row in some])
        )
        there = {(request_id, name) for request_id, name in connection.execute(known)}
        missing = [asdict(row) for row in some if (row.request_id, row.name) not in there]
        if missing:
            connection.execute(log_scores.insert(), missing)
        count += len(missing)
    return count
