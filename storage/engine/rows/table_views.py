"""Rows of tables as the upkeep of their views sees them."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from storage.engine.catalog import Connection
from storage.engine.schema import sheets, snapshots, tables, workspaces


@dataclass(frozen=True, slots=True)
class TableRow:
    no: int
    id: UUID
    title: str
    workspace: str
    deleted: bool


_TABLES = (
    sa.select(
        tables.c.no,
        tables.c.id,
        tables.c.title,
        workspaces.c.name.label("workspace"),
        tables.c.deleted_at.is_not(None).label("deleted"),
    )
    .join(workspaces, workspaces.c.id == tables.c.workspace_id)
    .where(tables.c.hidden.is_(False))
)


def select_changed_tables(connection: Connection, *, since: datetime) -> list[TableRow]:
    """Return the tables that changed since a moment, themselves, in their sheets, or in where rows stand."""
    moved = (
        sa.select(sheets.c.table_no)
        .join(snapshots, snapshots.c.no == sheets.c.head_no)
        .where(
            (snapshots.c.created_at >= since)
            | (sheets.c.updated_at >= since)
            | (sheets.c.deleted_at >= since)
        )
    )
    own = (tables.c.updated_at >= since) | (tables.c.deleted_at >= since)
    query = _TABLES.where(own | tables.c.no.in_(moved)).order_by(tables.c.no)
    return [TableRow(**row) for row in connection.execute(query).mappings()]


def select_tables_of(connection: Connection, workspace_id: int) -> list[TableRow]:
    """Return the live tables of a workspace, oldest first."""
    where = (tables.c.workspace_id == workspace_id) & tables.c.deleted_at.is_(None)
    query = _TABLES.where(where).order_by(tables.c.no)
    return [TableRow(**row) for row in connection.execute(query).mappings()]
