"""Staleness of computed cells: what a change makes stale turns stale in the change's own transaction."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from storage.domain.cells import STALE, CellState, CellStatus
from storage.domain.overlay import KEPT, Entry, Patch, Restated
from storage.domain.staleness import Changed, Rows, StalePlan, plan_stale
from storage.engine.catalog import Connection
from storage.engine.cell_statuses import count_statuses, rows_with_status
from storage.engine.rows.column_edges import Place, select_direct_readers, select_places, select_readers
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
    states: Mapping[int, CellState] | None = None,
    chosen: Callable[[Place], bool] = lambda _: True,
    whole: bool = False,
) -> Marked:
    """Mark the cells that read what changed, directly or not.

    `changed` are columns with the numbers of their rows (None: all). Cells of other sheets are marked at
    once; those of the sheet of `head` by the returned patch, which the caller commits. `states` says more
    of a column than that it is stale, also where it was. Of the columns that read what changed only the
    `chosen` are marked. `whole`: also those that are stale already, so that all are named.
    """
    own = {head.sheet_no: (head, next_row_no)}
    return _mark(connection, store, own, changed, now, states or {}, chosen, whole=whole)


def mark_all(
    connection: Connection,
    store: Store,
    changed: Collection[int],
    now: datetime,
    *,
    chosen: Callable[[Place], bool],
    states: Mapping[int, CellState] | None = None,
) -> int:
    """Mark at once cells that read columns of any sheets, directly or not; return how many turned stale.

    Of the columns that read them only those that are `chosen`.
    """
    return _mark(connection, store, {}, dict.fromkeys(changed), now, states or {}, chosen).stale_count


def _mark(
    connection: Connection,
    store: Store,
    own: Mapping[int, tuple[Snapshot, int]],
    changed: Changed,
    now: datetime,
    states: Mapping[int, CellState],
    chosen: Callable[[Place], bool] = lambda _: True,
    *,
    whole: bool = False,
) -> Marked:
    """As `mark_dependents`; `own` is the sheet, if any, whose patch the caller commits."""
    heads = _Heads(connection, store, own)
    turns = _Turning(store, heads, chosen, set(states), whole=whole)
    # mostly what reads a computed cell is stale already: then nobody asks who reads that in turn
    plan = turns.plan(connection, select_direct_readers(connection, list(changed)), changed)
    if plan.turning:
        plan = turns.plan(connection, select_readers(connection, list(changed)), changed)
    places = turns.places
    note_marks(connection, {no: (places[no].sheet_no, rows) for no, rows in plan.touched.items()})
    by_sheet: dict[int, dict[int, Rows]] = {}
    for no, rows in plan.turning.items():
        by_sheet.setdefault(places[no].sheet_no, {})[no] = rows
    returned = Patch()
    for sheet_no, mine in by_sheet.items():
        snapshot, next_row_no = heads.of(sheet_no)
        patch = stale_patch(mine, next_row_no, now, states)
        if sheet_no in own:
            returned = patch
        else:
            commit(connection, snapshot, snapshot.manifest, patch=patch, next_row_no=next_row_no, now=now)
    return Marked(returned, tuple(places[no] for no in plan.turning), turns.count(plan.turning))


class _Turning:
    """Which cells a change turns stale; each column's are read once."""

    def __init__(
        self,
        store: Store,
        heads: "_Heads",
        chosen: Callable[[Place], bool],
        told: Collection[int],
        *,
        whole: bool,
    ) -> None:
        self._store, self._heads, self._chosen = store, heads, chosen
        self._told, self._whole = told, whole
        self._found: dict[tuple[int, Rows], tuple[Rows, int]] = {}
        self._counts: dict[int, int] = {}
        self.places: Mapping[int, Place] = {}

    def plan(self, connection: Connection, reads: Mapping[int, list[int]], changed: Changed) -> StalePlan:
        places = self.places = select_places(connection, [*reads, *changed])
        readers = {no: reads[no] for no in reads if no in places and self._chosen(places[no])}
        return plan_stale(
            readers, changed, lambda *way: _translated(places, self._heads, *way), self._turning
        )

    def count(self, turning: Mapping[int, Rows]) -> int:
        """Count the cells that were not stale."""
        return sum(self._counts[no] for no in turning)

    def _turning(self, column_no: int, rows: Rows) -> Rows:
        if (column_no, rows) not in self._found:
            snapshot, _ = self._heads.of(self.places[column_no].sheet_no)
            self._found[column_no, rows] = find_turning(self._store, snapshot, column_no, rows)
        fresh, self._counts[column_no] = self._found[column_no, rows]
        return rows if self._whole or column_no in self._told else fresh


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


def find_turning(store: Store, snapshot: Snapshot, column_no: int, rows: Rows) -> tuple[Rows, int]:
    """Return which cells of a column among these are not stale yet, and how many; None: all may be."""
    if rows is None:
        counts = count_statuses(store.segments, snapshot, column_no)
        count = counts.total() - counts[_STALE_STATUS]
        return (None if count else frozenset()), count
    statuses = rows_with_status(store.segments, snapshot, column_no, rows)
    fresh = frozenset(row for row, status in statuses.items() if status != _STALE_STATUS)
    return fresh, len(fresh)


class _Heads:
    """The heads of sheets with their row counters, each read when it is asked for.

    So what the open transaction has committed already is not read through it.
    """

    def __init__(self, connection: Connection, store: Store, own: Mapping[int, tuple[Snapshot, int]]) -> None:
        self._connection, self._store = connection, store
        self._known = dict(own)

    def of(self, sheet_no: int) -> tuple[Snapshot, int]:
        if sheet_no not in self._known:
            sheet = find_sheet_by_no(self._connection, sheet_no)
            if sheet is None:
                raise LookupError(f"sheet {sheet_no} is gone, whose columns were just found")
            snapshot = self._store.snapshots.get(self._connection, sheet.head_no)
            self._known[sheet_no] = (snapshot, sheet.next_row_no)
        return self._known[sheet_no]


def _translated(
    places: Mapping[int, Place],
    heads: _Heads,
    source: int,
    reader: int,
    rows: Rows,
) -> Rows:
    """Rows of a reader in another sheet are those at the same index."""
    if rows is None or source not in places or places[source].sheet_no == places[reader].sheet_no:
        return rows
    from_manifest = heads.of(places[source].sheet_no)[0].manifest
    to_manifest = heads.of(places[reader].sheet_no)[0].manifest
    found: set[int] = set()
    for row in rows:
        index = from_manifest.find_index(row)
        span = None if index is None else next(to_manifest.spans(index, 1), None)
        if span is not None:
            found.add(span.first_row_no)
    return frozenset(found)
