"""Rows of the graph of columns: who reads whom, by number, across the sheets of a workspace."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from storage.engine.catalog import Connection
from storage.engine.schema import column_edges, columns, sheets, tables

_MOST_IN = 1_000
Reads = dict[int, list[int]]


@dataclass(frozen=True, slots=True)
class Place:
    """A live column of the workspace: whose it is."""

    no: int
    id: UUID
    title: str
    type: str
    sheet_no: int
    sheet_id: UUID
    table_id: UUID


def replace_edges(connection: Connection, column_no: int, source_nos: Iterable[int]) -> None:
    """Let a column read these and no others."""
    connection.execute(column_edges.delete().where(column_edges.c.column_no == column_no))
    values = [{"column_no": column_no, "source_no": one} for one in dict.fromkeys(source_nos)]
    if values:
        connection.execute(column_edges.insert(), values)


def replace_all_edges(connection: Connection, reads: Mapping[int, Collection[int]]) -> None:
    """Let columns read these and no others."""
    for some in _chunks(reads):
        connection.execute(column_edges.delete().where(column_edges.c.column_no.in_(some)))
    values = [
        {"column_no": no, "source_no": one} for no, sources in reads.items() for one in dict.fromkeys(sources)
    ]
    if values:
        connection.execute(column_edges.insert(), values)


def delete_edges(connection: Connection, column_no: int) -> None:
    """Let a deleted column read nothing; what read it goes on naming it, as it may be brought back."""
    connection.execute(column_edges.delete().where(column_edges.c.column_no == column_no))


def select_readers(connection: Connection, start: Collection[int]) -> Reads:
    """Return what each column reads that reads one of `start`, directly or not; only edges on such ways."""
    edge = column_edges
    found = sa.select(edge.c.column_no, edge.c.source_no).where(edge.c.source_no.in_(start))
    reach = found.cte("reach", recursive=True)
    reach = reach.union(
        sa.select(edge.c.column_no, edge.c.source_no).join(reach, edge.c.source_no == reach.c.column_no)
    )
    return _reads(connection, sa.select(reach.c.column_no, reach.c.source_no))


def select_sources(connection: Connection, start: Collection[int]) -> Reads:
    """Return what each of `start` reads, and what these read in turn."""
    edge = column_edges
    found = sa.select(edge.c.column_no, edge.c.source_no).where(edge.c.column_no.in_(start))
    reach = found.cte("reach", recursive=True)
    reach = reach.union(
        sa.select(edge.c.column_no, edge.c.source_no).join(reach, edge.c.column_no == reach.c.source_no)
    )
    return _reads(connection, sa.select(reach.c.column_no, reach.c.source_no))


def _reads(connection: Connection, query: sa.Select[*tuple[Any, ...]]) -> Reads:
    reads: Reads = {}
    for column_no, source_no in connection.execute(query).all():
        reads.setdefault(column_no, []).append(source_no)
    return reads


def select_read_elsewhere(connection: Connection, sheet_nos: Collection[int]) -> list[int]:
    """Return the live columns of sheets that columns of any other sheets read."""
    source, reader = columns.alias("source"), columns.alias("reader")
    query = (
        sa.select(source.c.no)
        .join(column_edges, column_edges.c.source_no == source.c.no)
        .join(reader, reader.c.no == column_edges.c.column_no)
        .where(source.c.sheet_no.in_(sheet_nos), reader.c.sheet_no.not_in(sheet_nos))
        .where(source.c.deleted_at.is_(None))
        .distinct()
    )
    return list(connection.execute(query).scalars())


def select_reading_elsewhere(connection: Connection, sheet_nos: Collection[int]) -> list[int]:
    """Return the live columns of sheets that read columns of any other sheets, live or not."""
    source, reader = columns.alias("source"), columns.alias("reader")
    query = (
        sa.select(reader.c.no)
        .join(column_edges, column_edges.c.column_no == reader.c.no)
        .join(source, source.c.no == column_edges.c.source_no)
        .where(reader.c.sheet_no.in_(sheet_nos), source.c.sheet_no.not_in(sheet_nos))
        .where(reader.c.deleted_at.is_(None))
        .distinct()
    )
    return list(connection.execute(query).scalars())


def select_direct_readers(connection: Connection, nos: Collection[int]) -> Reads:
    """Return the columns, live or not, that read some of these themselves, and which."""
    reads: Reads = {}
    for some in _chunks(nos):
        where = column_edges.c.source_no.in_(some)
        query = sa.select(column_edges.c.column_no, column_edges.c.source_no).where(where)
        for column_no, source_no in connection.execute(query.order_by(*column_edges.c)):
            reads.setdefault(column_no, []).append(source_no)
    return reads


def select_direct_sources(connection: Connection, nos: Collection[int]) -> Reads:
    """Return what columns read themselves, live or not."""
    reads: Reads = {}
    for some in _chunks(nos):
        where = column_edges.c.column_no.in_(some)
        query = sa.select(column_edges.c.column_no, column_edges.c.source_no).where(where)
        for column_no, source_no in connection.execute(query.order_by(*column_edges.c)):
            reads.setdefault(column_no, []).append(source_no)
    return reads


@dataclass(frozen=True, slots=True)
class Gone:
    """A column that is deleted: by itself, or with its sheet or table, whose title is given then."""

    title: str
    sheet: str | None
    table: str | None


def select_gone(connection: Connection, nos: Collection[int]) -> dict[int, Gone]:
    """Return those of columns that are deleted, themselves or with their sheet or table."""
    found: dict[int, Gone] = {}
    times = (columns.c.deleted_at, sheets.c.deleted_at, tables.c.deleted_at)
    query = (
        sa.select(columns.c.no, columns.c.title, sheets.c.title, tables.c.title, *times)
        .join(sheets, sheets.c.no == columns.c.sheet_no)
        .join(tables, tables.c.no == sheets.c.table_no)
        .where(sa.or_(*(time.is_not(None) for time in times)))
    )
    for some in _chunks(nos):
        for no, title, sheet, table, by_itself, with_sheet, with_table in connection.execute(
            query.where(columns.c.no.in_(some))
        ):
            of_sheet = sheet if by_itself is None and with_table is None and with_sheet else None
            found[no] = Gone(title, of_sheet, table if by_itself is None and with_table else None)
    return found


def select_changed_since(
    connection: Connection, nos: Collection[int], snapshot_no: int, *, but: int
) -> set[int]:
    """Return those of columns that are gone, or whose sheet was written after a snapshot (of any sheet).

    Columns of the sheet `but` are none of them.
    """
    found: set[int] = set()
    gone = [time.is_not(None) for time in (columns.c.deleted_at, sheets.c.deleted_at, tables.c.deleted_at)]
    query = (
        sa.select(columns.c.no)
        .join(sheets, sheets.c.no == columns.c.sheet_no)
        .join(tables, tables.c.no == sheets.c.table_no)
        .where(columns.c.sheet_no != but, sa.or_(sheets.c.head_no > snapshot_no, *gone))
    )
    for some in _chunks(nos):
        found.update(connection.execute(query.where(columns.c.no.in_(some))).scalars())
    return found


def _chunks(nos: Collection[int]) -> Iterable[list[int]]:
    wanted = sorted(nos)
    return (wanted[at : at + _MOST_IN] for at in range(0, len(wanted), _MOST_IN))


def select_places(connection: Connection, nos: Collection[int]) -> Mapping[int, Place]:
    """Return the live columns of live sheets among these numbers."""
    found: dict[int, Place] = {}
    for some in _chunks(set(nos)):
        found |= {place.no: place for place in _places(connection, columns.c.no.in_(some))}
    return found


def find_place(
    connection: Connection, workspace_id: int, table_id: UUID, sheet_id: UUID, column_id: UUID
) -> Place | None:
    """Return a live column of the workspace by its public ids; of tables out of clients' sight, none."""
    where = (
        (columns.c.id == column_id)
        & (columns.c.workspace_id == workspace_id)
        & (sheets.c.id == sheet_id)
        & (tables.c.id == table_id)
        & tables.c.hidden.is_(False)
    )
    return next(iter(_places(connection, where)), None)


def find_column_nos(
    connection: Connection, ids: Collection[UUID], *, deleted_too: bool = False
) -> dict[UUID, int]:
    """Return the numbers of live columns by id; with `deleted_too` also those that are gone."""
    wanted = list(ids)
    found: dict[UUID, int] = {}
    live = sa.true() if deleted_too else columns.c.deleted_at.is_(None)
    for first in range(0, len(wanted), _MOST_IN):
        some = columns.c.id.in_(wanted[first : first + _MOST_IN])
        query = sa.select(columns.c.id, columns.c.no).where(some, live)
        found |= {row[0]: row[1] for row in connection.execute(query)}
    return found


def _places(connection: Connection, where: sa.ColumnElement[bool]) -> list[Place]:
    query = (
        sa.select(
            columns.c.no,
            columns.c.id,
            columns.c.title,
            columns.c.type,
            columns.c.sheet_no,
            sheets.c.id.label("sheet_id"),
            tables.c.id.label("table_id"),
        )
        .join(sheets, sheets.c.no == columns.c.sheet_no)
        .join(tables, tables.c.no == sheets.c.table_no)
        .where(where, columns.c.deleted_at.is_(None))
        .where(sheets.c.deleted_at.is_(None), tables.c.deleted_at.is_(None))
    )
    return [Place(**row) for row in connection.execute(query).mappings()]
