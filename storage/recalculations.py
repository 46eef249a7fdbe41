"""Recalculations: started, listed, cancelled; how many cells of a sheet have which status."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from storage.audit import record_audit
from storage.domain.cells import CellStatus
from storage.domain.column_types import ASK_MODELS
from storage.domain.columns import Column
from storage.domain.errors import Invalid, NotFound, Problem, WrongColumnType
from storage.domain.graph import levels
from storage.domain.keys import Principal
from storage.domain.operations import COMPLETED, RECALCULATE, Lane, Operation
from storage.domain.paging import Page, PageRequest, page_of, plan_page
from storage.domain.recalculations import ANY_STATUS, DONE, Live, Recalculation, Task, Wanted
from storage.domain.sheets import Sheet
from storage.engine.catalog import Connection
from storage.engine.cell_statuses import count_statuses, rows_with_status
from storage.engine.rows.column_edges import select_sources
from storage.engine.rows.columns import select_columns
from storage.engine.rows.operations import update_open
from storage.engine.rows.recalculations import (
    find_recalculation,
    find_recalculation_by_no,
    insert_recalculation,
    select_open_recalculations,
    select_recalculations,
)
from storage.engine.rows.sheets import find_sheet_no_in
from storage.engine.snapshots import Snapshot
from storage.operations import enqueue
from storage.sheets import require_sheet
from storage.store import Store

NO_OPERATION = "No such operation"
_FEW_CELLS = 20_000
_QUICK_KINDS = frozenset({"comparison", "composition"})
MOST_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What a caller asks for: ids of computed columns (None: all) and places of rows (None: all)."""

    column_ids: Sequence[UUID] | None = None
    row_indices: Sequence[int] | None = None
    statuses: Sequence[str] = ANY_STATUS
    force: bool = False
    budget: float | None = None


def enqueue_column(
    connection: Connection, store: Store, who: Principal, sheet: Sheet, column: Column, cell_count: int
) -> Operation:
    """Queue the first computation of a column, in the transaction that adds it (E16)."""
    wanted = Wanted((column.no,))
    return _enqueue(connection, store, who, sheet, wanted, [Task(column.no, cell_count)])


def enqueue_columns(
    connection: Connection,
    store: Store,
    who: Principal,
    sheet: Sheet,
    columns: Sequence[Column],
    cell_count: int,
) -> Operation:
    """Queue the first computation of several columns, in the transaction that adds them."""
    ordered = order_columns(connection, [column.no for column in columns])
    wanted = Wanted(tuple(ordered))
    return _enqueue(connection, store, who, sheet, wanted, [Task(no, cell_count) for no in ordered])


def start_recalculation(
    store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, asked: Asked
) -> Recalculation:
    """Queue a recalculation; where no cell is to be visited it is `completed` at once.

    Raises:
        NotFound: no such sheet or column.
        WrongColumnType: a column is text.
        Invalid: a row index is out of range.
    """
    with store.catalog.transaction() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        wanted, tasks = plan_recalculation(connection, store, sheet, asked)
        operation = _enqueue(connection, store, who, sheet, wanted, tasks)
        if not any(task.cell_count for task in tasks):
            values = {
                "status": COMPLETED,
                "progress": 100,
                "message": "Nothing to do",
                "updated_at": store.now(),
            }
            update_open(connection, operation.no, operation.attempt, values)
        record_audit(
            connection,
            store,
            who,
            action="recalculate",
            kind="sheet",
            entity_id=sheet.id,
            details={"operation_id": operation.id, "column_count": len(tasks)},
        )
        found = find_recalculation_by_no(connection, operation.no)
    if found is None:
        raise RuntimeError("the recalculation just queued is gone")
    return found


def plan_recalculation(
    connection: Connection, store: Store, sheet: Sheet, asked: Asked
) -> tuple[Wanted, list[Task]]:
    """Return which cells are asked for, and the columns in order of computation.

    Raises:
        As `start_recalculation`.
    """
    chosen = _chosen(select_columns(connection, sheet.no), asked.column_ids)
    head = store.snapshots.get(connection, sheet.head_no)
    rows = None if asked.row_indices is None else _row_nos(head, asked.row_indices)
    ordered = order_columns(connection, [column.no for column in chosen])
    wanted = Wanted(tuple(ordered), rows, tuple(asked.statuses), asked.force, asked.budget)
    return wanted, [Task(no, _count(store, head, wanted, no)) for no in ordered]


def order_columns(connection: Connection, column_nos: Sequence[int]) -> list[int]:
    """Return columns in order of computation: each behind those that it reads."""
    reads = select_sources(connection, list(column_nos))
    return [no for level in levels(reads, column_nos) for no in level]


def _chosen(columns: Sequence[Column], ids: Sequence[UUID] | None) -> list[Column]:
    if ids is None:
        return [column for column in columns if column.computed]
    wanted = set(ids)
    found = [column for column in columns if column.id in wanted]
    if len(found) < len(wanted):
        raise NotFound("No such column")
    for column in found:
        if not column.computed:
            raise WrongColumnType(f"{column.title} is a text column: it is not computed")
    return found


def _row_nos(head: Snapshot, indices: Sequence[int]) -> tuple[int, ...]:
    found = set()
    for at, index in enumerate(indices):
        span = next(head.manifest.spans(index, 1), None) if index >= 0 else None
        if span is None:
            problem = f"must be below {head.manifest.row_count}, the number of rows"
            raise Invalid(Problem(("body", "row_indices", str(at)), problem, "less_than"))
        found.add(span.first_row_no)
    return tuple(sorted(found))


def _count(store: Store, head: Snapshot, wanted: Wanted, column_no: int) -> int:
    if wanted.row_nos is None:
        counts = count_statuses(store.segments, head, column_no)
        return sum(count for status, count in counts.items() if wanted.visits(status))
    if not wanted.statuses:
        return len(wanted.row_nos)
    statuses = rows_with_status(store.segments, head, column_no, wanted.row_nos)
    return sum(wanted.visits(status) for status in statuses.values())


def _enqueue(
    connection: Connection,
    store: Store,
    who: Principal,
    sheet: Sheet,
    wanted: Wanted,
    tasks: Sequence[Task],
) -> Operation:
    nos = {task.column_no for task in tasks}
    kinds = {column.runner for column in select_columns(connection, sheet.no) if column.no in nos}
    asks = bool(kinds & ASK_MODELS)
    lane = _lane(connection, sheet, tasks, kinds)
    operation = enqueue(
        connection,
        store,
        who,
        operation_id=None,
        kind=RECALCULATE,
        lane=lane,
        request_hash=sha256(repr(wanted).encode()).hexdigest(),
        spec=wanted.to_json(asks_models=asks),
        table_no=sheet.table_no,
        sheet_no=sheet.no,
    )
    insert_recalculation(connection, operation.no, tasks)
    return operation


def _lane(connection: Connection, sheet: Sheet, tasks: Sequence[Task], kinds: set[str]) -> Lane:
    """Choose where a run stands: little of what is quickly computed goes with the short work."""
    if select_open_recalculations(connection, sheet.no):
        # one that waits for another of its sheet must not take the place of what computes
        return "wait"
    if kinds & ASK_MODELS:
        return "wait"
    few = sum(task.cell_count for task in tasks) <= _FEW_CELLS
    return "short" if few and kinds <= _QUICK_KINDS else "compute"


def get_recalculation(
    store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, operation_id: str
) -> Recalculation:
    """Return a recalculation of a sheet as a client polls it (E19); also of a sheet that is deleted.

    Raises:
        NotFound: no such recalculation of that sheet, or the table is deleted.
    """
    with store.catalog.read() as connection:
        sheet_no = find_sheet_no_in(connection, who.workspace_id, table_id, sheet_id)
        found = None if sheet_no is None else find_recalculation(connection, sheet_no, operation_id)
    if found is None:
        raise NotFound(NO_OPERATION)
    return found


def list_recalculations(
    store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, request: PageRequest
) -> Page[Recalculation]:
    """List the recalculations of a sheet by age.

    Raises:
        NotFound: no such sheet.
        InvalidCursor: the cursor is of another list.
    """
    window = plan_page(store.cursor_key, request, sort="operation", filters={"sheet": str(sheet_id)})
    with store.catalog.read() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        found = select_recalculations(
            connection,
            sheet.no,
            after=window.position,
            descending=window.descending,
            limit=window.limit,
        )
    return page_of(store.cursor_key, window, found, lambda one: one.operation.no)


def live_states(connection: Connection, sheet_no: int) -> Live:
    """Return how the cells of a sheet read while it is recalculated."""
    return Live(select_open_recalculations(connection, sheet_no))


def sheet_status_counts(
    store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID
) -> tuple[int, dict[str, int]]:
    """Return the number of cells of a sheet, and how many have which status.

    Raises:
        NotFound: no such sheet.
    """
    with store.catalog.read() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        columns = select_columns(connection, sheet.no)
        head = store.snapshots.get(connection, sheet.head_no)
        running = select_open_recalculations(connection, sheet.no)
    rows = head.manifest.row_count
    counts: Counter[CellStatus] = Counter()
    for column in columns:
        if column.computed:
            counts += _live_counts(count_statuses(store.segments, head, column.no), column.no, running)
        else:
            counts["completed"] += rows
    return rows * len(columns), {status: count for status, count in counts.items() if count}


def _live_counts(
    counts: Counter[CellStatus], column_no: int, running: Sequence[Recalculation]
) -> Counter[CellStatus]:
    """Count cells that a recalculation will compute as queued or running."""
    moved = counts.copy()
    for one in running:
        for task in one.tasks:
            if task.column_no != column_no or task.state == DONE:
                continue
            becomes: CellStatus = "running" if task.state == "running" else "queued"
            # what is computed of a column is seen when all of it is committed
            left = task.cell_count
            for status in ("stale", "failed", "completed"):
                taken = min(left, moved[status]) if one.wanted.visits(status) else 0
                moved[status] -= taken
                moved[becomes] += taken
                left -= taken
    return moved


def count_left(store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, operation_id: str) -> int:
    """Return how many cells an ended operation left; 0 for one that is no recalculation of the sheet.

    Raises:
        NotFound: no such sheet.
    """
    with store.catalog.read() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        found = find_recalculation(connection, sheet.no, operation_id)
    return 0 if found is None else found.pending_count
