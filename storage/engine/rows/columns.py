"""Rows of columns."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from storage.domain.columns import Column
from storage.engine.catalog import Connection, new_no
from storage.engine.schema import columns

_FIELDS = [columns.c[name] for name in Column.__slots__]
_LIVE = columns.c.deleted_at.is_(None)
# beyond it, all are read: a statement takes only so many parameters
_MOST_IN = 1_000


def select_columns(
    connection: Connection, sheet_no: int, ids: Collection[UUID] | None = None
) -> list[Column]:
    """Return the columns of a sheet in their order; with few ids, only those of them that there are."""
    where = (columns.c.sheet_no == sheet_no) & _LIVE
    if ids is not None and len(ids) <= _MOST_IN:
        where &= columns.c.id.in_(ids)
    rows = connection.execute(sa.select(*_FIELDS).where(where).order_by(columns.c.position_rank)).mappings()
    return [Column(**row) for row in rows]


def select_columns_page(
    connection: Connection, sheet_no: int, *, after: int | None, backwards: bool, limit: int
) -> list[Column]:
    """List columns by rank, beyond `after`, in the direction asked for."""
    where = (columns.c.sheet_no == sheet_no) & _LIVE
    rank = columns.c.position_rank
    if after is not None:
        where &= rank < after if backwards else rank > after
    query = sa.select(*_FIELDS).where(where).order_by(rank.desc() if backwards else rank).limit(limit)
    return [Column(**row) for row in connection.execute(query).mappings()]


def find_column_by_no(connection: Connection, sheet_no: int, no: int) -> Column | None:
    """Return the live column of that number in that sheet."""
    where = (columns.c.sheet_no == sheet_no) & (columns.c.no == no) & _LIVE
    row = connection.execute(sa.select(*_FIELDS).where(where)).mappings().first()
    return None if row is None else Column(**row)


def insert_text_columns(
    connection: Connection,
    *,
    sheet_no: int,
    workspace_id: int,
    titles: Sequence[str],
    ids: Sequence[UUID],
    ranks: Sequence[int],
    now: datetime,
) -> list[Column]:
    """Add text columns; their numbers ascend in the order given."""
    if not titles:
        return []
    values = [
        {
            "id": id_,
            "sheet_no": sheet_no,
            "workspace_id": workspace_id,
            "title": title,
            "type": "text",
            "config": {},
            "position_rank": rank,
            "is_output_column": False,
            "dependencies": [],
            "created_at": now,
        }
        for id_, title, rank in zip(ids, titles, ranks, strict=True)
    ]
    connection.execute(columns.insert(), values)
    added = [column for column in select_columns(connection, sheet_no) if column.position_rank >= ranks[0]]
    return added[-len(titles) :]


def mark_columns_deleted(connection: Connection, nos: Sequence[int], now: datetime) -> None:
    connection.execute(columns.update().where(columns.c.no.in_(nos)).values(deleted_at=now))


def insert_column(connection: Connection, values: Mapping[str, Any]) -> Column:
    """Add a column; return it with its number."""
    no = new_no(connection.execute(columns.insert().values(**values)))
    return Column(no=no, **{name: values[name] for name in Column.__slots__ if name != "no"})


def update_column(connection: Connection, no: int, values: Mapping[str, Any]) -> None:
    connection.execute(columns.update().where(columns.c.no == no).values(**values))


def renumber_columns(connection: Connection, nos: Sequence[int], ranks: Sequence[int]) -> None:
    """Give columns new ranks, in order."""
    where = columns.c.no == sa.bindparam("which")
    change = columns.update().where(where).values(position_rank=sa.bindparam("rank"))
    values = [{"which": no, "rank": rank} for no, rank in zip(nos, ranks, strict=True)]
    connection.execute(change, values)


def find_column(connection: Connection, sheet_no: int, column_id: UUID) -> Column | None:
    """Return the live column of that id in that sheet."""
    where = (columns.c.sheet_no == sheet_no) & (columns.c.id == column_id) & _LIVE
    row = connection.execute(sa.select(*_FIELDS).where(where)).mappings().first()
    return None if row is None else Column(**row)


def update_columns(connection: Connection, sheet_no: int, wanted: Sequence[Column]) -> None:
    """Make columns that the sheet has or had what is wanted, live."""
    for column in wanted:
        values = {name: getattr(column, name) for name in Column.__slots__ if name in columns.c}
        connection.execute(
            columns.update()
            .where((columns.c.no == column.no) & (columns.c.sheet_no == sheet_no))
            .values(**values, deleted_at=None)
        )
