"""Upkeep of sheets: what its asset and its sensor do."""

from datetime import timedelta
from uuid import UUID

from pipelines.background import in_background
from pipelines.work import Outcome
from storage.partitions import list_new_sheets
from storage.sheet_upkeep import compact_sheet_of, due_sheets
from storage.sheet_views import publish_sheet_views, sheet_views_due
from storage.store import Store


def find_due_sheets(store: Store) -> list[str]:
    """What a sensor asks: the ids of the sheets that have much to fold or to join."""
    return [sheet_id for _, sheet_id in due_sheets(store)]


def find_new_sheets(store: Store, cursor: str | None) -> tuple[list[str], str]:
    """What a sensor asks: the ids of sheets made since its cursor, up to 1,000, and the cursor after them."""
    ids, last_no = list_new_sheets(store, after_no=int(cursor or 0))
    return ids, str(last_no)


def count_due_views(store: Store) -> int:
    """What a sensor asks: how many tables changed since their views were published."""
    return sheet_views_due(store)


def run_publication(store: Store, *, again: timedelta = timedelta(0)) -> int:
    """Publish the views of the tables that changed, also of those within `again`; return how many."""
    return in_background(lambda: publish_sheet_views(store, again=again))


def run_compaction(store: Store, sheet_id: str) -> Outcome:
    """Compact one sheet, behind everything that a caller waits for.

    Raises:
        LeaseRefused: another compaction of the sheet is at work.
        Unavailable: the disk is full.
    """
    done = in_background(lambda: compact_sheet_of(store, UUID(sheet_id)))
    return Outcome(
        {
            "rows": done.rows,
            "bytes": done.bytes,
            "version": done.version,
            "cells_folded": done.cells_folded,
            "parts_before": done.parts_before,
            "parts_after": done.parts_after,
            "segments": done.segments,
        }
    )
