"""Rows of deleted logs and of how long a workspace keeps them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import sqlalchemy as sa

from storage.domain.log_deletions import Gone
from storage.engine.catalog import Connection
from storage.engine.log_schema import log_deletions, log_keeping, log_manifests, log_patches, log_scores

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Keeping:
    """How many days a workspace keeps its logs (None: for ever), up to which id all are gone, since when."""

    workspace_id: int
    keep_days: int | None
    gone_through: int
    gone_us: int


def select_gone(connection: Connection, workspace_id: int) -> Gone:
    """What every reader of a workspace's logs leaves out."""
    through = select_gone_through(connection, workspace_id)
    where = (log_deletions.c.workspace_id == workspace_id) & (log_deletions.c.log_id > through)
    query = sa.select(log_deletions.c.log_id).where(where).order_by(log_deletions.c.log_id)
    return Gone(through, tuple(connection.execute(query).scalars()))


def is_gone(connection: Connection, workspace_id: int, log_id: int) -> bool:
    if log_id <= select_gone_through(connection, workspace_id):
        return True
    where = (log_deletions.c.workspace_id == workspace_id) & (log_deletions.c.log_id == log_id)
    return connection.execute(sa.select(log_deletions.c.log_id).where(where)).first() is not None


def select_gone_through(connection: Connection, workspace_id: int) -> int:
    """The id up to which all logs of a workspace are gone."""
    query = sa.select(log_keeping.c.gone_through).where(log_keeping.c.workspace_id == workspace_id)
    return int(connection.execute(query).scalar() or 0)


def insert_deletions(connection: Connection, workspace_id: int, ids: Sequence[int], now_us: int) -> int:
    """Note logs as deleted, with their scores and patches; return how many were not before."""
    fresh = 0
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        known = sa.select(log_deletions.c.log_id).where(
            (log_deletions.c.workspace_id == workspace_id) & log_deletions.c.log_id.in_(some)
        )
        there = set(connection.execute(known).scalars())
        rows = [
            {"workspace_id": workspace_id, "log_id": log_id, "deleted_us": now_us}
            for log_id in some
            if log_id not in there
        ]
        if rows:
            connection.execute(log_deletions.insert(), rows)
        fresh += len(rows)
        scored = (log_scores.c.workspace_id == workspace_id) & log_scores.c.request_id.in_(some)
        connection.execute(log_scores.delete().where(scored))
        patched = (log_patches.c.workspace_id == workspace_id) & log_patches.c.request_id.in_(some)
        connection.execute(log_patches.delete().where(patched))
    return fresh


def forget_deletions(connection: Connection, workspace_id: int, ids: Iterable[int]) -> int:
    """Forget deleted logs that no file holds any more; return how many."""
    forgotten, left = 0, sorted(ids)
    while left:
        some, left = left[:_AT_ONCE], left[_AT_ONCE:]
        where = (log_deletions.c.workspace_id == workspace_id) & log_deletions.c.log_id.in_(some)
        forgotten += connection.execute(log_deletions.delete().where(where)).rowcount
    return forgotten


def select_waiting_deletions(connection: Connection) -> dict[int, tuple[int, int]]:
    """By workspace: how many deleted logs still stand in files, and when the first was deleted."""
    columns = (
        log_deletions.c.workspace_id,
        sa.func.count().label("count"),
        sa.func.min(log_deletions.c.deleted_us).label("since"),
    )
    query = sa.select(*columns).group_by(log_deletions.c.workspace_id)
    return {workspace: (count, since) for workspace, count, since in connection.execute(query)}


def raise_change(connection: Connection, workspace_id: int) -> None:
    """Note that what the segments of a workspace show was changed by other than a flush."""
    where = log_manifests.c.workspace_id == workspace_id
    raised = log_manifests.update().where(where).values(change=log_manifests.c.change + 1)
    if connection.execute(raised).rowcount == 0:
        connection.execute(log_manifests.insert().values(workspace_id=workspace_id, change=1))


def select_keeping(connection: Connection) -> list[Keeping]:
    columns = (getattr(log_keeping.c, one.name) for one in fields(Keeping))
    query = sa.select(*columns).order_by(log_keeping.c.workspace_id)
    return [Keeping(*row) for row in connection.execute(query)]


def set_keep_days(connection: Connection, workspace_id: int, days: int | None) -> None:
    _upsert_keeping(connection, workspace_id, {"keep_days": days})


def raise_gone_through(connection: Connection, workspace_id: int, through: int, now_us: int) -> bool:
    """Delete all logs of a workspace up to an id; False when they were gone before."""
    if through <= select_gone_through(connection, workspace_id):
        return False
    _upsert_keeping(connection, workspace_id, {"gone_through": through, "gone_us": now_us})
    below = (log_deletions.c.workspace_id == workspace_id) & (log_deletions.c.log_id <= through)
    connection.execute(log_deletions.delete().where(below))
    patched = (log_patches.c.workspace_id == workspace_id) & (log_patches.c.request_id <= through)
    connection.execute(log_patches.delete().where(patched))
    return True


def trim_scores(connection: Connection, workspace_id: int, through: int, most: int) -> int:
    """Remove some scores of logs up to an id; return how many."""
    own = (log_scores.c.workspace_id == workspace_id) & (log_scores.c.request_id <= through)
    first = sa.select(log_scores.c.request_id).where(own).order_by(log_scores.c.request_id).limit(most)
    ids = list(connection.execute(first).scalars())
    if not ids:
        return 0
    where = own & (log_scores.c.request_id <= ids[-1])
    return connection.execute(log_scores.delete().where(where)).rowcount


def _upsert_keeping(connection: Connection, workspace_id: int, values: dict[str, int | None]) -> None:
    where = log_keeping.c.workspace_id == workspace_id
    if connection.execute(log_keeping.update().where(where).values(values)).rowcount == 0:
        connection.execute(log_keeping.insert().values(workspace_id=workspace_id, **values))
