"""Rows of patches: what was said of logged requests after they were logged, and groups of requests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from storage.domain.log_patches import Patch, merge_patches
from storage.engine.catalog import Connection, new_no
from storage.engine.log_body import decode_body, encode_body
from storage.engine.log_schema import log_groups, log_patches, log_state


@dataclass(frozen=True, slots=True)
class PatchRow:
    """All that was said of one request so far; `change` grows with every patch of any request."""

    workspace_id: int
    request_id: int
    patch: Patch
    updated_us: int
    change: int


_NEXT_CHANGE = (
    log_state.update().values(patch_change=log_state.c.patch_change + 1).returning(log_state.c.patch_change)
)
_OLDEST_FIRST = (log_patches.c.workspace_id, log_patches.c.request_id)


def upsert_patch(
    connection: Connection, workspace_id: int, request_id: int, patch: Mapping[str, Any], now_us: int
) -> None:
    """Add to what is said of a request.

    Raises:
        Invalid: it would be too large.
    """
    change = connection.execute(_NEXT_CHANGE).scalar_one()
    old = find_patch(connection, workspace_id, request_id)
    body = encode_body(merge_patches({} if old is None else old.patch, patch))
    values = {"body": body, "updated_us": now_us, "change": change}
    if old is None:
        whose = {"workspace_id": workspace_id, "request_id": request_id}
        connection.execute(log_patches.insert().values(whose | values))
    else:
        connection.execute(log_patches.update().where(_of(workspace_id, request_id)).values(values))


def find_patch(connection: Connection, workspace_id: int, request_id: int) -> PatchRow | None:
    row = connection.execute(sa.select(log_patches).where(_of(workspace_id, request_id))).first()
    return None if row is None else _row(row)


def select_patches(
    connection: Connection,
    workspace_id: int | None = None,
    *,
    first_id: int | None = None,
    last_id: int | None = None,
) -> list[PatchRow]:
    """Patches by workspace and request; of requests from `first_id` to `last_id`, both inclusive."""
    query = sa.select(log_patches).order_by(*_OLDEST_FIRST)
    if workspace_id is not None:
        query = query.where(log_patches.c.workspace_id == workspace_id)
    if first_id is not None:
        query = query.where(log_patches.c.request_id >= first_id)
    if last_id is not None:
        query = query.where(log_patches.c.request_id <= last_id)
    return [_row(row) for row in connection.execute(query)]


def forget_patches(connection: Connection, folded: Sequence[PatchRow]) -> int:
    """Remove patches that are now in a segment, but those that grew meanwhile; return how many."""
    each = log_patches.delete().where(
        (log_patches.c.workspace_id == sa.bindparam("whose"))
        & (log_patches.c.request_id == sa.bindparam("request"))
        & (log_patches.c.change == sa.bindparam("seen"))
    )
    return sum(
        connection.execute(
            each, {"whose": row.workspace_id, "request": row.request_id, "seen": row.change}
        ).rowcount
        for row in folded
    )


def select_last_patches(connection: Connection) -> dict[int, int]:
    """The last change by workspace, of patches of logs that are in segments."""
    flushed = sa.func.coalesce(sa.select(log_state.c.flushed_through).scalar_subquery(), 0)
    query = (
        sa.select(log_patches.c.workspace_id, sa.func.max(log_patches.c.change))
        .where(log_patches.c.request_id <= flushed)
        .group_by(log_patches.c.workspace_id)
    )
    return {int(row[0]): int(row[1]) for row in connection.execute(query)}


def insert_group(connection: Connection, workspace_id: int, now_us: int) -> int:
    values = {"workspace_id": workspace_id, "created_us": now_us}
    return new_no(connection.execute(log_groups.insert().values(values)))


def has_group(connection: Connection, workspace_id: int, group_id: int) -> bool:
    where = (log_groups.c.workspace_id == workspace_id) & (log_groups.c.id == group_id)
    return connection.execute(sa.select(log_groups.c.id).where(where)).first() is not None


def _of(workspace_id: int, request_id: int) -> sa.ColumnElement[bool]:
    return (log_patches.c.workspace_id == workspace_id) & (log_patches.c.request_id == request_id)


def _row(row: sa.Row[Any]) -> PatchRow:
    return PatchRow(row.workspace_id, row.request_id, decode_body(row.body), row.updated_us, row.change)
