"""Rows of the log manifest: which files hold which logs, what is published, who may flush."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import sqlalchemy as sa

from storage.domain.log_flush import TailState
from storage.engine.catalog import Connection
from storage.engine.log_schema import (
    log_companions,
    log_leases,
    log_manifests,
    log_retired,
    log_scores,
    log_segments,
    log_state,
    log_tail,
    log_views,
)
from storage.engine.rows.log_patches import select_last_patches
from storage.engine.rows.log_tail import FETCHED_ROWS, TailRow

LOGS, SCORES = "request_logs", "scores"


@dataclass(frozen=True, slots=True)
class Segment:
    """One immutable file; ids (of logs, or numbers of score changes) are inclusive.

    `from_us`, `to_us`: when the first and last of its logs were recorded, where that is known.
    """

    id: UUID
    workspace_id: int
    kind: str
    key: str
    first_id: int
    last_id: int
    rows: int
    bytes: int
    sha256: str
    created_us: int
    from_us: int | None = None
    to_us: int | None = None


@dataclass(frozen=True, slots=True)
class ScoreRow:
    workspace_id: int
    request_id: int
    name: str
    score: int
    updated_us: int
    change: int


_FIELDS = tuple(column.name for column in log_segments.columns)
_FLUSHED = sa.func.coalesce(sa.select(log_state.c.flushed_through).scalar_subquery(), 0)
_SCORED = sa.func.coalesce(sa.select(log_state.c.scores_through).scalar_subquery(), 0)


def insert_segments(connection: Connection, segments: Sequence[Segment]) -> None:
    if segments:
        rows = [{name: getattr(segment, name) for name in _FIELDS} for segment in segments]
        connection.execute(log_segments.insert(), rows)


def replace_segments(
    connection: Connection, old: Sequence[Segment], new: Sequence[Segment], now_us: int
) -> bool:
    """Name new files in place of old ones, which are retired; False when others replaced them meanwhile."""
    ids = [segment.id for segment in old]
    if connection.execute(log_segments.delete().where(log_segments.c.id.in_(ids))).rowcount != len(ids):
        return False
    made = log_companions.c.segment_id.in_(ids)
    keys = [segment.key for segment in old]
    keys += connection.execute(sa.select(log_companions.c.key).where(made)).scalars()
    connection.execute(log_companions.delete().where(made))
    connection.execute(log_retired.insert(), [{"key": key, "retired_us": now_us} for key in keys])
    insert_segments(connection, new)
    return True


def select_retired(connection: Connection) -> dict[str, int]:
    """Files that the manifest no longer names, and since when."""
    return {row.key: row.retired_us for row in connection.execute(sa.select(log_retired))}


def forget_retired(connection: Connection, keys: Sequence[str]) -> None:
    for key in keys:
        connection.execute(log_retired.delete().where(log_retired.c.key == key))


def select_companion_keys(connection: Connection) -> set[str]:
    return set(connection.execute(sa.select(log_companions.c.key)).scalars())


def select_segments(
    connection: Connection, *, workspace_id: int | None = None, kind: str | None = None
) -> list[Segment]:
    """Segments in the order of their ids."""
    query = sa.select(log_segments).order_by(log_segments.c.first_id, log_segments.c.workspace_id)
    if workspace_id is not None:
        query = query.where(log_segments.c.workspace_id == workspace_id)
    if kind is not None:
        query = query.where(log_segments.c.kind == kind)
    return [Segment(*row) for row in connection.execute(query)]


def select_arrived_since(connection: Connection, since_us: int) -> list[tuple[int, int, int]]:
    """Of each file with logs recorded since then: rows, when the first and the last were recorded."""
    columns = (log_segments.c.rows, log_segments.c.from_us, log_segments.c.to_us)
    where = (log_segments.c.kind == LOGS) & (log_segments.c.to_us >= since_us)
    return [(rows, first, last) for rows, first, last in connection.execute(sa.select(*columns).where(where))]


def find_segment_of(connection: Connection, workspace_id: int, log_id: int) -> Segment | None:
    """The segment whose ids span a log's."""
    where = (
        (log_segments.c.workspace_id == workspace_id)
        & (log_segments.c.kind == LOGS)
        & (log_segments.c.first_id <= log_id)
        & (log_segments.c.last_id >= log_id)
    )
    row = connection.execute(sa.select(log_segments).where(where)).first()
    return None if row is None else Segment(*row)


def read_tail_state(connection: Connection) -> TailState:
    """How much waits to be flushed and published."""
    state = connection.execute(sa.select(log_state)).first()
    if state is None:
        return TailState(0, None)
    oldest_log = (
        sa.select(log_tail.c.created_us)
        .where(log_tail.c.id > state.flushed_through)
        .order_by(log_tail.c.id)
        .limit(1)
    )
    oldest_score = sa.select(sa.func.min(log_scores.c.updated_us)).where(
        log_scores.c.change > state.scores_through
    )
    oldest = [
        us for query in (oldest_log, oldest_score) if (us := connection.execute(query).scalar()) is not None
    ]
    waiting = state.appended_bytes - state.flushed_bytes
    return TailState(waiting, min(oldest, default=None), bool(select_views_behind(connection)))


_WAITING_BYTES = sa.select(log_state.c.appended_bytes - log_state.c.flushed_bytes)


def waiting_tail_bytes(connection: Connection) -> int:
    """Bytes of the logs that wait to be flushed."""
    return connection.execute(_WAITING_BYTES).scalar() or 0


def flushed_through(connection: Connection) -> int:
    return int(connection.execute(sa.select(_FLUSHED)).scalar_one())


def select_next_id(connection: Connection) -> int:
    """The id that the next log will have."""
    return int(connection.execute(sa.select(log_state.c.next_id)).scalar() or 1)


def last_tail_id(connection: Connection) -> int:
    return int(connection.execute(sa.select(sa.func.coalesce(sa.func.max(log_tail.c.id), 0))).scalar_one())


def select_chunk(
    connection: Connection, *, after: int, through: int, max_rows: int, max_bytes: int
) -> list[TailRow]:
    """The oldest tail rows above `after`, as many as fit (at least one), all workspaces."""
    query = (
        sa.select(log_tail)
        .where((log_tail.c.id > after) & (log_tail.c.id <= through))
        .order_by(log_tail.c.id)
        .limit(max_rows)
    )
    chunk: list[TailRow] = []
    size = 0
    # a few at a time: a row may have 10 MB
    result = connection.execution_options(yield_per=FETCHED_ROWS).execute(query)
    for row in result:
        size += len(row.body)
        if chunk and size > max_bytes:
            break
        chunk.append(TailRow(*row))
    result.close()
    return chunk


def move_flushed(connection: Connection, *, base: int, through: int, size: int) -> bool:
    """Forget the tail up to an id; False when another flush moved it meanwhile."""
    where = log_state.c.flushed_through == base
    values = {"flushed_through": through, "flushed_bytes": log_state.c.flushed_bytes + size}
    return connection.execute(log_state.update().where(where).values(values)).rowcount == 1


_TRIMMABLE = sa.select(sa.select(sa.func.min(log_tail.c.id)).scalar_subquery(), _FLUSHED)


def trim_tail(connection: Connection, max_rows: int) -> int:
    """Remove the oldest flushed rows of the tail; return how many."""
    oldest, flushed = connection.execute(_TRIMMABLE).one()
    if oldest is None or oldest > flushed:
        return 0
    # one bound, not two: of two the database seeks by one, and looks at every row for the other
    where = log_tail.c.id <= min(flushed, oldest + max_rows - 1)
    return connection.execute(log_tail.delete().where(where)).rowcount


def select_changed_scores(connection: Connection, max_rows: int) -> list[ScoreRow]:
    """Scores that changed since the last segment of scores, in the order of change."""
    query = (
        sa.select(log_scores)
        .where(log_scores.c.change > _SCORED)
        .order_by(log_scores.c.change)
        .limit(max_rows)
    )
    return [ScoreRow(*row) for row in connection.execute(query)]


def scores_through(connection: Connection) -> int:
    return int(connection.execute(sa.select(_SCORED)).scalar_one())


def move_scores(connection: Connection, *, base: int, through: int) -> bool:
    """Note that changes up to a number are in segments; False when another flush did meanwhile."""
    where = log_state.c.scores_through == base
    return connection.execute(log_state.update().where(where).values(scores_through=through)).rowcount == 1


def take_lease(connection: Connection, name: str, owner: str, *, now_us: int, until_us: int) -> bool:
    """Take or renew a lease; False when another owner has it."""
    free = (log_leases.c.owner == owner) | (log_leases.c.until_us <= now_us)
    values = {"owner": owner, "until_us": until_us}
    update = log_leases.update().where((log_leases.c.name == name) & free).values(values)
    if connection.execute(update).rowcount == 1:
        return True
    taken = connection.execute(sa.select(log_leases.c.owner).where(log_leases.c.name == name)).first()
    if taken is None:
        connection.execute(log_leases.insert().values(name=name, **values))
    return taken is None


def is_lease_held(connection: Connection, name: str, now_us: int) -> bool:
    where = (log_leases.c.name == name) & (log_leases.c.until_us > now_us)
    return connection.execute(sa.select(log_leases.c.owner).where(where)).first() is not None


def release_lease(connection: Connection, name: str, owner: str) -> None:
    where = (log_leases.c.name == name) & (log_leases.c.owner == owner)
    connection.execute(log_leases.update().where(where).values(until_us=0))


def release_all_leases(connection: Connection) -> None:
    """Release what was held where the database came from."""
    connection.execute(log_leases.delete())


@dataclass(frozen=True, slots=True)
class Shown:
    """What a view file shows: logs, scores and patches up to a number, and which change of the manifest."""

    logs_through: int = 0
    scores_through: int = 0
    patches_through: int = 0
    change: int = 0


def select_wanted_views(connection: Connection) -> dict[int, Shown]:
    """What the view file of each workspace should show now."""

    def last(kind: str) -> sa.ColumnElement[int]:
        return sa.func.coalesce(
            sa.func.max(sa.case((log_segments.c.kind == kind, log_segments.c.last_id))), 0
        )

    changes = {row.workspace_id: row.change for row in connection.execute(sa.select(log_manifests))}
    columns = (log_segments.c.workspace_id, last(LOGS), last(SCORES))
    query = sa.select(*columns).group_by(log_segments.c.workspace_id)
    ends = {workspace: (logs, scores) for workspace, logs, scores in connection.execute(query)}
    patched = select_last_patches(connection)
    return {
        workspace: Shown(*ends.get(workspace, (0, 0)), patched.get(workspace, 0), changes.get(workspace, 0))
        for workspace in ends.keys() | changes.keys()
    }


def select_views_behind(connection: Connection) -> dict[int, Shown]:
    """Workspaces whose view file is behind: what it should show."""
    shown = {
        row.workspace_id: Shown(row.logs_through, row.scores_through, row.patches_through, row.change)
        for row in connection.execute(sa.select(log_views))
    }
    wanted = select_wanted_views(connection)
    return {workspace: to_show for workspace, to_show in wanted.items() if shown.get(workspace) != to_show}


def mark_published(connection: Connection, workspace_id: int, shown: Shown, *, now_us: int) -> None:
    values = {
        "logs_through": shown.logs_through,
        "scores_through": shown.scores_through,
        "patches_through": shown.patches_through,
        "change": shown.change,
        "published_us": now_us,
    }
    where = log_views.c.workspace_id == workspace_id
    if connection.execute(log_views.update().where(where).values(values)).rowcount == 0:
        connection.execute(log_views.insert().values(workspace_id=workspace_id, **values))


def last_published_us(connection: Connection) -> int:
    return int(
        connection.execute(sa.select(sa.func.coalesce(sa.func.max(log_views.c.published_us), 0))).scalar_one()
    )
