"""Staleness of computed cells: what a change makes stale turns stale in the change's own transaction."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from storage.domain.cells import STALE, CellState, CellStatus
from storage.domain.overlay import KEPT, Entry, Patch, Restated
from storage.domain.staleness import Changed, Rows, plan_stale
from storage.engine.catalog import Connection
from storage.engine.cell_statuses import count_statuses, rows_with_status
from storage.engine.rows.column_edges import Place, select_places, select_read_elsewhere, select_readers
from storage.engine.rows.columns import select_columns
from storage.engine.rows.sheets import find_sheet_by_no
from storage.engine.rows.stale_marks import insert_marks
from storage.engine.snapshots import Snapshot, commit
from storage.store import Store

_STALE_STATUS: CellStatus = "stale"


@dataclass(frozen=True, slots=True)
class Marked:
    """What turned stale: the patch for the changed sheet, the columns nearest first, and how many cells."""

    patch: Patch
    columns: tuple[Place, ...]
    stale_count: int


NOTHING = Marked(Patch(), (), 0)


def mark_dependents(
    connection: Connection,
    store: Store,
    head: Snapshot,
    changed: Changed,
    now: datetime,
    *,
    next_row_no: int,
    apart_from: Collection[int] = (),
    states: Mapping[int, CellState] | None = None,
) -> Marked:
    """Mark the cells that read what changed, directly or not.

    `changed` are columns of `head` with the numbers of their rows (None: all). Cells of other sheets are
    marked at once; those of this sheet by the returned patch, which the caller commits. `apart_from` are
    columns that stay as they are; `states` says more of a column than that it is stale.
    """
    reads = select_readers(connection, list(changed))
    if not reads:
        return NOTHING
    places = select_places(connection, [*reads, *changed])
    readers = {no: reads[no] for no in reads if no in places}
    others = _heads(connection, store, head, places.values())
    plan = plan_stale(readers, changed, lambda *way: _translated(places, others, *way))
    plan = {no: rows for no, rows in plan.items() if no not in apart_from}
    stale_count = 0
    patches: dict[int, Patch] = {}
    note_marks(connection, {no: (places[no].sheet_no, rows) for no, rows in plan.items()})
    for sheet_no, (snapshot, row_counter) in others.items():
        mine = {no: rows for no, rows in plan.items() if places[no].sheet_no == sheet_no}
        if mine:
            stale_count += count_turning(store, snapshot, mine)
            counter = next_row_no if sheet_no == head.sheet_no else row_counter
            patches[sheet_no] = stale_patch(mine, counter, now, states or {})
    for sheet_no, patch in patches.items():
        if sheet_no != head.sheet_no:
            snapshot, row_counter = others[sheet_no]
            commit(connection, snapshot, snapshot.manifest, patch=patch, next_row_no=row_counter, now=now)
    return Marked(patches.get(head.sheet_no, Patch()), tuple(places[no] for no in plan), stale_count)


def mark_elsewhere(
    connection: Connection,
    store: Store,
    head: Snapshot,
    now: datetime,
    *,
    states: Mapping[int, CellState] | None = None,
) -> int:
    """Mark what other sheets read of a sheet whose rows moved, came or went; return how many turned stale.

    Nothing of the sheet itself is marked: its cells read those of their own row.
    """
    read = select_read_elsewhere(connection, head.sheet_no)
    if not read:
        return 0
    own = [column.no for column in select_columns(connection, head.sheet_no)]
    changed: Changed = dict.fromkeys(read)
    marked = mark_dependents(
        connection, store, head, changed, now, next_row_no=0, apart_from=own, states=states
    )
    return marked.stale_count


def note_marks(connection: Connection, marked: Mapping[int, tuple[int, Rows]]) -> None:
    """Let a recalculation that may be computing these cells know that its results are outdated.

    `marked` are (sheet number, rows) by column.
    """
    insert_marks(connection, marked)


def stale_patch(
    rows: Mapping[int, Rows], next_row_no: int, now: datetime, states: Mapping[int, CellState]
) -> Patch:
    """Return the patch that makes rows of columns stale."""
    return Patch(
        {
            no: {row: Entry(KEPT, now, states.get(no, STALE)) for row in some}
            for no, some in rows.items()
            if some is not None
        },
        {no: Restated(states.get(no, STALE), next_row_no) for no, some in rows.items() if some is None},
    )


def count_turning(store: Store, snapshot: Snapshot, rows: Mapping[int, Rows]) -> int:
    """Count the cells among these that are not stale yet."""
    turning = 0
    for no, some in rows.items():
        if some is None:
            counts = count_statuses(store.segments, snapshot, no)
            turning += counts.total() - counts[_STALE_STATUS]
        else:
            statuses = rows_with_status(store.segments, snapshot, no, some)
            turning += sum(status != _STALE_STATUS for status in statuses.values())
    return turning


def _heads(
    connection: Connection, store: Store, head: Snapshot, places: Collection[Place]
) -> dict[int, tuple[Snapshot, int]]:
    """Return the head of each sheet with its row counter."""
    found = {head.sheet_no: (head, 0)}
    for sheet_no in {place.sheet_no for place in places} - {head.sheet_no}:
        sheet = find_sheet_by_no(connection, sheet_no)
        if sheet is not None:
            found[sheet_no] = (store.snapshots.get(connection, sheet.head_no), sheet.next_row_no)
    return found


def _translated(
    places: Mapping[int, Place],
    heads: Mapping[int, tuple[Snapshot, int]],
    source: int,
    reader: int,
    rows: Rows,
) -> Rows:
    """Rows of a reader in another sheet are those at the same index."""
    if rows is None or source not in places or places[source].sheet_no == places[reader].sheet_no:
        return rows
    from_manifest = heads[places[source].sheet_no][0].manifest
    to_manifest = heads[places[reader].sheet_no][0].manifest
    found: set[int] = set()
    for row in rows:
        index = from_manifest.find_index(row)
        span = None if index is None else next(to_manifest.spans(index, 1), None)
        if span is not None:
            found.add(span.first_row_no)
    return frozenset(found)
