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


def delete_edges(connection: Connection, column_no: int) -> None:
    """Take a deleted column out of the graph: it reads nothing, and nothing reads it any more."""
    gone = (column_edges.c.column_no == column_no) | (column_edges.c.source_no == column_no)
    connection.execute(column_edges.delete().where(gone))


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


def select_read_elsewhere(connection: Connection, sheet_no: int) -> list[int]:
    """Return the columns of a sheet that columns of other sheets read."""
    source, reader = columns.alias("source"), columns.alias("reader")
    query = (
        sa.select(source.c.no)
        .join(column_edges, column_edges.c.source_no == source.c.no)
        .join(reader, reader.c.no == column_edges.c.column_no)
        .where(source.c.sheet_no == sheet_no, reader.c.sheet_no != sheet_no)
        .distinct()
    )
    return list(connection.execute(query).scalars())


def select_places(connection: Connection, nos: Collection[int]) -> Mapping[int, Place]:
    """Return the live columns of live sheets among these numbers."""
    wanted = list(nos)
    found: dict[int, Place] = {}
    for first in range(0, len(wanted), _MOST_IN):
        where = columns.c.no.in_(wanted[first : first + _MOST_IN])
        found |= {place.no: place for place in _places(connection, where)}
    return found


def find_place(
    connection: Connection, workspace_id: int, table_id: UUID, sheet_id: UUID, column_id: UUID
) -> Place | None:
    """Return a live column of the workspace by its public ids."""
    where = (
        (columns.c.id == column_id)
        & (columns.c.workspace_id == workspace_id)
        & (sheets.c.id == sheet_id)
        & (tables.c.id == table_id)
    )
    return next(iter(_places(connection, where)), None)


def find_column_nos(connection: Connection, ids: Collection[UUID]) -> dict[UUID, int]:
    """Return the numbers of live columns by id."""
    wanted = list(ids)
    found: dict[UUID, int] = {}
    for first in range(0, len(wanted), _MOST_IN):
        query = sa.select(columns.c.id, columns.c.no).where(
            columns.c.id.in_(wanted[first : first + _MOST_IN]), columns.c.deleted_at.is_(None)
        )
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
