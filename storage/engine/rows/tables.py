"""Rows of tables."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from storage.domain.tables import Table
from storage.engine.catalog import Connection, new_no
from storage.engine.schema import folders, sheets, tables

_FIELDS = [tables.c[name] for name in Table.__slots__ if name != "sheet_row_counts"]
_LIVE = tables.c.deleted_at.is_(None)


def insert_table(connection: Connection, values: Mapping[str, Any]) -> int:
    return new_no(connection.execute(tables.insert().values(**values)))


def find_table_no(connection: Connection, workspace_id: int, table_id: UUID) -> int | None:
    """Return the number of the workspace's live table of that id."""
    where = (tables.c.id == table_id) & (tables.c.workspace_id == workspace_id) & _LIVE
    return connection.execute(sa.select(tables.c.no).where(where)).scalar()


def find_table(connection: Connection, workspace_id: int, table_id: UUID) -> Table | None:
    where = (tables.c.id == table_id) & (tables.c.workspace_id == workspace_id) & _LIVE
    found = _with_counts(connection, connection.execute(sa.select(*_FIELDS).where(where)).mappings())
    return found[0] if found else None


def find_deleted_table(
    connection: Connection, workspace_id: int, table_id: UUID, *, since: datetime
) -> tuple[int, bool] | None:
    """Return the number of a table, live or deleted since a moment, and whether it is deleted."""
    where = (tables.c.id == table_id) & (tables.c.workspace_id == workspace_id)
    where &= _LIVE | (tables.c.deleted_at >= since)
    row = connection.execute(sa.select(tables.c.no, tables.c.deleted_at).where(where)).first()
    return None if row is None else (row[0], row[1] is not None)


def update_table(connection: Connection, no: int, values: Mapping[str, Any]) -> None:
    connection.execute(tables.update().where(tables.c.no == no).values(**values))


def select_tables(
    connection: Connection,
    workspace_id: int,
    *,
    folder_id: int | None,
    name: str | None,
    after: int | None,
    descending: bool,
    limit: int,
) -> list[Table]:
    """List tables by number, beyond `after`; `name` is any part of the title, in any case."""
    where = (tables.c.workspace_id == workspace_id) & _LIVE & tables.c.hidden.is_(False)
    if folder_id is not None:
        where &= tables.c.folder_id == folder_id
    if name is not None:
        where &= tables.c.title.icontains(name, autoescape=True)
    if after is not None:
        where &= tables.c.no < after if descending else tables.c.no > after
    query = sa.select(*_FIELDS).where(where).limit(limit)
    query = query.order_by(tables.c.no.desc() if descending else tables.c.no)
    return _with_counts(connection, connection.execute(query).mappings())


def _with_counts(connection: Connection, rows: Iterable[sa.RowMapping]) -> list[Table]:
    found = list(rows)
    counts: dict[int, dict[UUID, int]] = {row["no"]: {} for row in found}
    where = sheets.c.table_no.in_(list(counts)) & sheets.c.deleted_at.is_(None)
    query = sa.select(sheets.c.table_no, sheets.c.id, sheets.c.row_count).where(where)
    for table_no, sheet_id, row_count in connection.execute(
        query.order_by(sheets.c.table_no, sheets.c.index)
    ):
        counts[table_no][sheet_id] = row_count
    return [Table(**row, sheet_row_counts=counts[row["no"]]) for row in found]


def touch_table(connection: Connection, no: int, now: datetime) -> None:
    connection.execute(tables.update().where(tables.c.no == no).values(updated_at=now))


def count_titles_from(connection: Connection, workspace_id: int, prefix: str) -> int:
    """Count about how many tables there were whose title begins with a prefix; by the index alone."""
    title = tables.c.title
    where = (tables.c.workspace_id == workspace_id) & (title >= prefix) & (title < prefix + "\U0010ffff")
    return connection.execute(sa.select(sa.func.count()).select_from(tables).where(where)).scalar_one()


def had_title(connection: Connection, workspace_id: int, title: str) -> bool:
    """Say whether a table has or, deleted, had a title: a deleted one may come back."""
    where = (tables.c.workspace_id == workspace_id) & (tables.c.title == title)
    return connection.execute(sa.select(tables.c.no).where(where).limit(1)).first() is not None


def has_folder(connection: Connection, workspace_id: int, folder_id: int) -> bool:
    where = (folders.c.id == folder_id) & (folders.c.workspace_id == workspace_id)
    return connection.execute(sa.select(folders.c.id).where(where)).first() is not None


def mark_table_deleted(connection: Connection, no: int, now: datetime) -> None:
    connection.execute(tables.update().where(tables.c.no == no).values(deleted_at=now))
