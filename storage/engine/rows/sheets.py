"""Rows of sheets. A sheet counts while neither it nor its table is deleted."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from storage.domain.sheets import Sheet
from storage.engine.catalog import Connection, new_no
from storage.engine.schema import sheets, tables

_FIELDS = [*(sheets.c[name] for name in Sheet.__slots__ if name != "table_id"), tables.c.id.label("table_id")]
_LIVE = sheets.c.deleted_at.is_(None) & tables.c.deleted_at.is_(None)
_SHEETS = sa.select(*_FIELDS).join(tables, tables.c.no == sheets.c.table_no)
# built once: every call about a sheet begins with it
_FIND = _SHEETS.where(
    sheets.c.id == sa.bindparam("sheet"),
    tables.c.id == sa.bindparam("table"),
    tables.c.workspace_id == sa.bindparam("workspace"),
    _LIVE,
)


def find_sheet(connection: Connection, workspace_id: int, table_id: UUID, sheet_id: UUID) -> Sheet | None:
    """Return the live sheet of that id in that live table of that workspace."""
    values = {"workspace": workspace_id, "table": table_id, "sheet": sheet_id}
    row = connection.execute(_FIND, values).mappings().first()
    return None if row is None else Sheet(**row)


def find_deleted_sheet(
    connection: Connection, workspace_id: int, table_id: UUID, sheet_id: UUID, *, since: datetime
) -> tuple[Sheet, bool] | None:
    """Return a sheet of a live table, live or deleted since a moment, and whether it is deleted."""
    where = (
        (sheets.c.id == sheet_id)
        & (tables.c.id == table_id)
        & (tables.c.workspace_id == workspace_id)
        & tables.c.deleted_at.is_(None)
        & (sheets.c.deleted_at.is_(None) | (sheets.c.deleted_at >= since))
    )
    query = _SHEETS.add_columns(sheets.c.deleted_at).where(where)
    row = connection.execute(query).mappings().first()
    if row is None:
        return None
    values = dict(row)
    deleted_at = values.pop("deleted_at")
    return Sheet(**values), deleted_at is not None


def find_sheet_by_no(connection: Connection, no: int) -> Sheet | None:
    return _one(connection, (sheets.c.no == no) & _LIVE)


def find_sheets_by_title(connection: Connection, workspace_id: int, table: str, sheet: str) -> list[Sheet]:
    """Return the live sheets of a workspace that a table and a sheet, each by title or id, name."""
    where = (
        (tables.c.workspace_id == workspace_id)
        & _named(tables.c.title, tables.c.id, table)
        & _named(sheets.c.title, sheets.c.id, sheet)
        & _LIVE
    )
    return [Sheet(**row) for row in connection.execute(_SHEETS.where(where)).mappings()]


def _named(title: sa.Column[str], id_: sa.Column[UUID], text: str) -> sa.ColumnElement[bool]:
    try:
        return (title == text) | (id_ == UUID(text))
    except ValueError:
        return title == text


def find_sheet_no(connection: Connection, sheet_id: UUID) -> int | None:
    """Return the number of a sheet by its id alone."""
    return connection.execute(sa.select(sheets.c.no).where(sheets.c.id == sheet_id)).scalar()


def select_sheet_nos(connection: Connection, table_no: int) -> list[int]:
    """Return the numbers of a table's sheets that are not themselves deleted."""
    where = (sheets.c.table_no == table_no) & sheets.c.deleted_at.is_(None)
    return list(connection.execute(sa.select(sheets.c.no).where(where)).scalars())


def find_sheet_no_in(connection: Connection, workspace_id: int, table_id: UUID, sheet_id: UUID) -> int | None:
    """Return the number of a sheet of a live table; the sheet itself may be deleted."""
    where = (
        (sheets.c.id == sheet_id)
        & (tables.c.id == table_id)
        & (tables.c.workspace_id == workspace_id)
        & tables.c.deleted_at.is_(None)
    )
    query = sa.select(sheets.c.no).join(tables, tables.c.no == sheets.c.table_no).where(where)
    return connection.execute(query).scalar()


def select_live_sheet_nos(connection: Connection) -> list[int]:
    """Return the numbers of all sheets that are not deleted, oldest first."""
    query = sa.select(sheets.c.no).where(sheets.c.deleted_at.is_(None)).order_by(sheets.c.no)
    return list(connection.execute(query).scalars())


def find_row_count(connection: Connection, no: int) -> int:
    """Return the rows of a sheet, deleted or not; 0 when there never was one."""
    return connection.execute(sa.select(sheets.c.row_count).where(sheets.c.no == no)).scalar() or 0


def _one(connection: Connection, where: sa.ColumnElement[bool]) -> Sheet | None:
    row = connection.execute(_SHEETS.where(where)).mappings().first()
    return None if row is None else Sheet(**row)


def count_sheets(connection: Connection, table_no: int) -> int:
    query = sa.select(sa.func.count()).where((sheets.c.table_no == table_no) & sheets.c.deleted_at.is_(None))
    return connection.execute(query).scalar_one()


def has_title(connection: Connection, table_no: int, title: str) -> bool:
    where = (sheets.c.table_no == table_no) & (sheets.c.title == title) & sheets.c.deleted_at.is_(None)
    return connection.execute(sa.select(sheets.c.no).where(where).limit(1)).first() is not None


def shift_sheets(connection: Connection, table_no: int, from_index: int) -> None:
    """Move the sheets from an index on one place to the end."""
    where = (sheets.c.table_no == table_no) & (sheets.c.index >= from_index) & sheets.c.deleted_at.is_(None)
    connection.execute(sheets.update().where(where).values(index=sheets.c.index + 1))


def move_sheet(connection: Connection, sheet: Sheet, index: int) -> None:
    """Move the sheets between a sheet's place and another so that it can go there."""
    lower, upper, step = (sheet.index + 1, index, -1) if index > sheet.index else (index, sheet.index - 1, 1)
    where = (
        (sheets.c.table_no == sheet.table_no)
        & sheets.c.index.between(lower, upper)
        & (sheets.c.no != sheet.no)
        & sheets.c.deleted_at.is_(None)
    )
    connection.execute(sheets.update().where(where).values(index=sheets.c.index + step))


def insert_sheet(connection: Connection, values: Mapping[str, Any]) -> int:
    """Insert a sheet; return its number."""
    return new_no(connection.execute(sheets.insert().values(**values)))


def update_sheet(connection: Connection, no: int, values: Mapping[str, Any]) -> None:
    connection.execute(sheets.update().where(sheets.c.no == no).values(**values))


def select_sheets(
    connection: Connection, table_no: int, *, after: int | None, backwards: bool, limit: int
) -> list[Sheet]:
    """List a table's sheets by index, beyond `after`, in the direction asked for."""
    where = (sheets.c.table_no == table_no) & _LIVE
    if after is not None:
        where &= sheets.c.index < after if backwards else sheets.c.index > after
    order = sheets.c.index.desc() if backwards else sheets.c.index
    rows = connection.execute(_SHEETS.where(where).order_by(order).limit(limit)).mappings()
    return [Sheet(**row) for row in rows]


def mark_sheet_deleted(connection: Connection, sheet: Sheet, now: datetime) -> None:
    """Take a sheet out of its table and close the gap."""
    update_sheet(connection, sheet.no, {"deleted_at": now, "writer_no": None})
    where = (
        (sheets.c.table_no == sheet.table_no) & (sheets.c.index > sheet.index) & sheets.c.deleted_at.is_(None)
    )
    connection.execute(sheets.update().where(where).values(index=sheets.c.index - 1))
