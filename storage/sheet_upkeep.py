"""Upkeep of sheets: overlays are folded into segments, small segments are joined; callers go on meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from storage.domain.errors import CommitConflict
from storage.domain.imports import ImportedSegment
from storage.domain.overlay import FOLD_BYTES, FOLD_CELLS, Overlay, needs_fold
from storage.domain.sheet_upkeep import MOST_PIECES, Rewritten, plan_rewrites, relaid, without_folded
from storage.domain.sheets import Sheet
from storage.engine.rewrites import bounded, rewrite_rows
from storage.engine.rows.columns import select_columns
from storage.engine.rows.segments import insert_segments
from storage.engine.rows.sheets import find_sheet_by_no, find_sheet_no
from storage.engine.rows.snapshots import select_due_sheets
from storage.engine.snapshots import Snapshot, commit, insert_patch
from storage.leases import held_lease
from storage.store import Store

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Compacted:
    """What the upkeep of a sheet did, and the rows and version that it holds; all 0 when it is deleted."""

    cells_folded: int = 0
    parts_before: int = 0
    parts_after: int = 0
    segments: int = 0
    rows: int = 0
    bytes: int = 0
    version: int = 0


def due_sheets(store: Store, limit: int = 100) -> list[tuple[int, str]]:
    """Return number and id of the sheets whose overlay or parts have become too many."""
    with store.catalog.read() as connection:
        return select_due_sheets(
            connection, cells=FOLD_CELLS, size=FOLD_BYTES, pieces=MOST_PIECES, limit=limit
        )


def compact_sheet_of(store: Store, sheet_id: UUID) -> Compacted:
    """As `compact_sheet`, by the sheet's id; a deleted sheet has nothing to do."""
    with store.catalog.read() as connection:
        sheet_no = find_sheet_no(connection, sheet_id)
    return Compacted() if sheet_no is None else compact_sheet(store, sheet_no)


def compact_sheet(store: Store, sheet_no: int, *, everything: bool = False) -> Compacted:
    """Write a sheet's overlay and small segments anew as few large ones; every version reads as before.

    `everything` folds also an overlay that is still small.

    Raises:
        LeaseRefused: another compaction of the sheet is at work.
        CommitConflict: others kept changing the same cells.
        Unavailable: the disk is full.
        In each case the sheet is as it was.
    """
    with held_lease(store, f"compact_sheet_{sheet_no}"):
        for left in reversed(range(_TRIES)):
            try:
                return _compact(store, sheet_no, everything=everything)
            except CommitConflict:
                if not left:
                    raise
    raise AssertionError("the last try returns or raises")


def _compact(store: Store, sheet_no: int, *, everything: bool) -> Compacted:
    with store.catalog.read() as connection:
        sheet = find_sheet_by_no(connection, sheet_no)
        if sheet is None:
            return Compacted()
        base = store.snapshots.get(connection, sheet.head_no)
        column_nos = [column.no for column in select_columns(connection, sheet_no)]
    fold = everything or needs_fold(base.overlay.cell_count, base.overlay.bytes)
    planned = plan_rewrites(base.manifest, base.overlay, column_nos, fold=fold)
    rewrites = [piece for one in planned for piece in bounded(store.segments, base, one)]
    if not rewrites:
        parts = len(base.manifest.parts)
        return Compacted(
            parts_before=parts, parts_after=parts, rows=base.manifest.row_count, version=sheet.version_count
        )
    written: list[ImportedSegment] = []
    try:
        done = [
            rewrite_rows(store.data, store.segments, base, one, sheet.id, store.new_id, written)
            for one in rewrites
        ]
        return _publish(store, sheet, base, done, written)
    except BaseException:
        for segment in written:
            store.data.remove(segment.key)
        raise


def _publish(
    store: Store,
    sheet: Sheet,
    base: Snapshot,
    done: Sequence[Rewritten],
    written: Sequence[ImportedSegment],
) -> Compacted:
    now = store.now()
    with store.catalog.transaction() as connection:
        there = find_sheet_by_no(connection, sheet.no)
        if there is None:
            raise CommitConflict("The sheet was deleted meanwhile")
        head = store.snapshots.get(connection, there.head_no)
        live = {column.no for column in select_columns(connection, sheet.no)}
        manifest, left = relaid(base.manifest, head.manifest, done, live)
        kept = without_folded(base.overlay, head.overlay, manifest, done, left)
        if kept is None:
            raise CommitConflict("An earlier state was restored meanwhile")
        insert_segments(connection, sheet.no, written, now)
        overlay = Overlay()
        if kept.cells or kept.restated:
            overlay = Overlay((insert_patch(connection, sheet.no, kept, now),))
        commit(
            connection,
            head,
            manifest,
            overlay=overlay,
            next_row_no=there.next_row_no,
            now=now,
            updated_at=there.updated_at,
        )
    return Compacted(
        cells_folded=head.overlay.cell_count - overlay.cell_count,
        parts_before=len(head.manifest.parts),
        parts_after=len(manifest.parts),
        segments=len(written),
        rows=manifest.row_count,
        bytes=sum(segment.bytes for segment in written),
        version=there.version_count,
    )
