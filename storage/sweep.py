"""Upkeep of what nobody can read any more: states between versions, files, sheets deleted for good."""

from dataclasses import dataclass
from datetime import timedelta

from storage.domain.deletions import UNDELETE_FOR
from storage.engine.rows.snapshots import (
    delete_segments,
    delete_unnamed,
    empty_sheet,
    find_unnamed,
    mark_segments,
    select_named_keys,
    select_purgeable,
    select_sheets_with_segments,
    select_sheets_with_snapshots,
)
from storage.engine.sweep import Swept, sweep_segments
from storage.store import Store

GRACE = timedelta(hours=24)
"""Longer than any import, read or computation: what is older and not named, nobody uses."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many snapshots, patches and segments nothing named, and how many deleted sheets were emptied."""

    sheets: int
    snapshots: int
    patches: int
    segments: int


def sweep_sheets(store: Store, *, grace: timedelta = GRACE) -> Swept:
    """Remove the files of sheets that no commit named within the grace."""
    return sweep_segments(store.catalog, store.data, store.now() - grace)


def forget_unnamed(store: Store, *, grace: timedelta = GRACE) -> Forgotten:
    """Take away what no version, no head and no reader needs.

    A state that was neither saved nor is the head goes after the grace; a segment is first noted as
    unnamed, and goes with its file when it still is after the grace: who began to read it has ended.
    """
    emptied = _empty_deleted(store)
    states, edits = _forget_states(store, grace)
    return Forgotten(emptied, states, edits, _forget_segments(store, grace))


def _empty_deleted(store: Store) -> int:
    with store.catalog.read() as connection:
        gone = select_purgeable(connection, before=store.now() - UNDELETE_FOR)
    for sheet_no in gone:
        with store.catalog.transaction() as connection:
            empty_sheet(connection, sheet_no)
    return len(gone)


def _forget_states(store: Store, grace: timedelta) -> tuple[int, int]:
    before = store.now() - grace
    with store.catalog.read() as connection:
        due = select_sheets_with_snapshots(connection, before=before)
    states = edits = 0
    for sheet_no in due:
        with store.catalog.transaction() as connection:
            unnamed = find_unnamed(connection, sheet_no, before=before)
            delete_unnamed(connection, unnamed)
        states += len(unnamed.snapshot_nos)
        edits += len(unnamed.patch_nos)
    return states, edits


def _forget_segments(store: Store, grace: timedelta) -> int:
    with store.catalog.read() as connection:
        all_sheets = select_sheets_with_segments(connection)
    forgotten = 0
    for sheet_no in all_sheets:
        with store.catalog.transaction() as connection:
            named = select_named_keys(connection, sheet_no)
            now = store.now()
            old = mark_segments(connection, sheet_no, named, now, now - grace)
            delete_segments(connection, old)
        for key in old:
            store.data.remove(key)
        forgotten += len(old)
    return forgotten
