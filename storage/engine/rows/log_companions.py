"""Rows of what is made from segments: the index of words, the dictionary of values, signs of large logs."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from uuid import UUID

import sqlalchemy as sa

from storage.engine.catalog import Connection
from storage.engine.log_schema import log_companions, log_retired, log_segments
from storage.engine.rows.log_segments import LOGS, Segment

WORDS, VALUES = "words", "values"
KINDS = (WORDS, VALUES)
"""What each segment has."""
SIGNS = "signs"
"""What a segment has beside them where some of its logs have very many words."""


@dataclass(frozen=True, slots=True)
class Companion:
    """A file made from a segment."""

    segment_id: UUID
    kind: str
    key: str
    bytes: int
    sha256: str | None


def select_companions(connection: Connection, workspace_id: int | None = None) -> list[Companion]:
    query = sa.select(log_companions).join(log_segments, log_segments.c.id == log_companions.c.segment_id)
    if workspace_id is not None:
        query = query.where(log_segments.c.workspace_id == workspace_id)
    return [Companion(*row) for row in connection.execute(query)]


def select_lacking(connection: Connection, *, from_bytes: int) -> list[Segment]:
    """Segments of logs of some size that lack a companion, the newest first."""
    made = sa.select(sa.func.count()).where(log_companions.c.segment_id == log_segments.c.id)
    query = (
        sa.select(log_segments)
        .where((log_segments.c.kind == LOGS) & (log_segments.c.bytes >= from_bytes))
        .where(made.scalar_subquery() < len(KINDS))
        .order_by(log_segments.c.first_id.desc())
    )
    return [Segment(*row) for row in connection.execute(query)]


def insert_companions(connection: Connection, made: Collection[Companion]) -> bool:
    """Name what was made of a segment; False when the segment is gone or has it."""
    ids = {companion.segment_id for companion in made}
    named = sa.select(sa.func.count()).where(log_segments.c.id.in_(ids))
    has = sa.select(sa.func.count()).where(log_companions.c.segment_id.in_(ids))
    if connection.execute(named).scalar() != len(ids) or connection.execute(has).scalar():
        return False
    connection.execute(log_companions.insert(), [asdict(one) for one in made])
    return True


def forget_companions(connection: Connection, segment_ids: Collection[UUID], now_us: int) -> None:
    """Retire what was made of some segments, so that it is made anew."""
    for segment_id in segment_ids:
        where = log_companions.c.segment_id == segment_id
        keys = list(connection.execute(sa.select(log_companions.c.key).where(where)).scalars())
        if keys:
            connection.execute(log_retired.insert(), [{"key": key, "retired_us": now_us} for key in keys])
            connection.execute(log_companions.delete().where(where))
