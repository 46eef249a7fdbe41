"""Partitions: a sheet and a dataset group have one from their making until nobody can bring them back."""

from collections.abc import Sequence
from uuid import UUID

from storage.domain.deletions import UNDELETE_FOR
from storage.domain.prompts import MAX_INTEGER
from storage.engine.rows.partitions import select_kept_groups, select_kept_sheets, select_new_sheets
from storage.store import Store

MOST_AT_ONCE = 1_000


def list_new_sheets(store: Store, *, after_no: int) -> tuple[list[str], int]:
    """Return the ids of sheets made after another, up to 1,000, and the number of the last of them."""
    with store.catalog.read() as connection:
        found = select_new_sheets(connection, after_no=after_no, limit=MOST_AT_ONCE)
    return [str(id_) for _, id_ in found], found[-1][0] if found else after_no


def find_gone_sheets(store: Store, keys: Sequence[str]) -> list[str]:
    """Return those of partitions that stand for no sheet, or one deleted too long ago to be brought back."""
    ids = {key: id_ for key in keys if (id_ := _as_id(key)) is not None}
    with store.catalog.read() as connection:
        kept = select_kept_sheets(connection, ids.values(), before=store.now() - UNDELETE_FOR)
    return [key for key in keys if ids.get(key) not in kept]


def find_gone_groups(store: Store, keys: Sequence[str]) -> list[str]:
    """Return those of partitions that stand for no dataset group, or one that is deleted."""
    ids = {key: int(key) for key in keys if key.isdecimal() and int(key) <= MAX_INTEGER}
    with store.catalog.read() as connection:
        kept = select_kept_groups(connection, ids.values())
    return [key for key in keys if ids.get(key) not in kept]


def _as_id(key: str) -> UUID | None:
    # a hand may have added any key
    try:
        return UUID(key)
    except ValueError:
        return None
