"""Rows of what has a partition of its own where runs are kept: sheets, and groups of datasets."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from storage.engine.catalog import Connection
from storage.engine.registry_schema import dataset_groups
from storage.engine.schema import sheets, tables

_MOST_IN = 1_000


def select_new_sheets(connection: Connection, *, after_no: int, limit: int) -> list[tuple[int, UUID]]:
    """Return number and id of live sheets that clients see, made after another, the oldest first."""
    live = sheets.c.deleted_at.is_(None) & tables.c.deleted_at.is_(None) & tables.c.hidden.is_(False)
    query = sa.select(sheets.c.no, sheets.c.id).join(tables, tables.c.no == sheets.c.table_no)
    found = connection.execute(query.where(live, sheets.c.no > after_no).order_by(sheets.c.no).limit(limit))
    return [(row[0], row[1]) for row in found]


def select_kept_sheets(connection: Connection, ids: Collection[UUID], *, before: datetime) -> set[UUID]:
    """Return those of sheets that were not deleted before a moment, themselves or with their table."""
    wanted, found = list(ids), set[UUID]()
    gone = sa.or_(sheets.c.deleted_at < before, tables.c.deleted_at < before)
    query = (
        sa.select(sheets.c.id).join(tables, tables.c.no == sheets.c.table_no).where(gone.is_not(sa.true()))
    )
    for first in range(0, len(wanted), _MOST_IN):
        some = sheets.c.id.in_(wanted[first : first + _MOST_IN])
        found.update(connection.execute(query.where(some)).scalars())
    return found


def select_kept_groups(connection: Connection, ids: Collection[int]) -> set[int]:
    """Return those of dataset groups that are not deleted."""
    wanted, found = list(ids), set[int]()
    query = sa.select(dataset_groups.c.id).where(dataset_groups.c.deleted_at.is_(None))
    for first in range(0, len(wanted), _MOST_IN):
        some = dataset_groups.c.id.in_(wanted[first : first + _MOST_IN])
        found.update(connection.execute(query.where(some)).scalars())
    return found
