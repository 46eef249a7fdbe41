"""Rows of dataset groups as the upkeep of their views sees them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from storage.engine.catalog import Connection
from storage.engine.registry_schema import dataset_groups, datasets
from storage.engine.schema import workspaces


@dataclass(frozen=True, slots=True)
class GroupRow:
    id: int
    name: str
    sheet_no: int | None
    workspace: str
    deleted: bool


_GROUPS = sa.select(
    dataset_groups.c.id,
    dataset_groups.c.name,
    dataset_groups.c.sheet_no,
    workspaces.c.name.label("workspace"),
    dataset_groups.c.deleted_at.is_not(None).label("deleted"),
).join(workspaces, workspaces.c.id == dataset_groups.c.workspace_id)


def select_changed_groups(connection: Connection, *, since: datetime) -> list[GroupRow]:
    """Return the groups that have had rows and changed since a moment, themselves or in a version."""
    versions = sa.select(datasets.c.dataset_group_id).where(datasets.c.updated_at >= since)
    changed = (dataset_groups.c.updated_at >= since) | dataset_groups.c.id.in_(versions)
    query = _GROUPS.where(changed & dataset_groups.c.sheet_no.is_not(None)).order_by(dataset_groups.c.id)
    return [GroupRow(**row) for row in connection.execute(query).mappings()]


def select_groups_of(connection: Connection, workspace_id: int) -> list[GroupRow]:
    """Return the live groups of a workspace that have had rows, oldest first."""
    where = (
        (dataset_groups.c.workspace_id == workspace_id)
        & dataset_groups.c.deleted_at.is_(None)
        & dataset_groups.c.sheet_no.is_not(None)
    )
    query = _GROUPS.where(where).order_by(dataset_groups.c.id)
    return [GroupRow(**row) for row in connection.execute(query).mappings()]


def select_live_versions(connection: Connection, group_id: int) -> Sequence[tuple[int, int]]:
    """Return the versions of a group that are not deleted, oldest first: number, version of the sheet."""
    query = (
        sa.select(datasets.c.version_number, datasets.c.sheet_version)
        .where(
            datasets.c.dataset_group_id == group_id,
            datasets.c.version_number > 0,
            datasets.c.deleted_at.is_(None),
        )
        .order_by(datasets.c.version_number)
    )
    return [(number, version) for number, version in connection.execute(query)]
