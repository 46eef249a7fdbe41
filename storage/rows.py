"""Rows: read page by page, now or as a version had them."""

from collections.abc import Sequence
from contextlib import ExitStack
from uuid import UUID

from storage.domain.cells import Cell
from storage.domain.columns import Column
from storage.domain.errors import NotFound
from storage.domain.ids import CellAddress, cell_id
from storage.domain.keys import Principal
from storage.domain.paging import PageRequest, Window, page_of, plan_page
from storage.domain.recalculations import Live
from storage.domain.rows import Row, RowPage, rows_of
from storage.domain.sheets import Sheet
from storage.engine.catalog import Connection
from storage.engine.rows.columns import select_columns
from storage.engine.rows.versions import find_version_state
from storage.engine.sheet_rows import read_columns, row_numbers, rows_bytes
from storage.engine.snapshots import Snapshot
from storage.recalculations import live_states
from storage.sheets import require_sheet
from storage.store import Store

MOST_CELLS = 100_000
MOST_BYTES = 4 * 1024 * 1024
LARGE_BYTES = 1024 * 1024


def list_rows(
    store: Store,
    who: Principal,
    *,
    table_id: UUID,
    sheet_id: UUID,
    request: PageRequest,
    version_number: int | None = None,
    column_ids: Sequence[UUID] | None = None,
    held: ExitStack | None = None,
) -> RowPage:
    """List rows by index; `column_ids` chooses columns (they keep the sheet's order).

    A page of many columns or of long values has fewer rows than were asked for: its `limit` says how many.
    Large pages are few at once: `held` keeps the place of one until its caller has spelled it.

    Raises:
        NotFound: no such sheet, version or column.
        InvalidCursor: the cursor is of another list.
        Unavailable: too many pages of long values are being read.
    """
    chosen = None if column_ids is None else sorted({str(one) for one in column_ids})
    filters = {"sheet": str(sheet_id), "version_number": version_number, "column_ids": chosen}
    window = plan_page(store.cursor_key, request, sort="row_index", filters=filters)
    with store.catalog.read() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        snapshot, columns, version = _state(store, connection, sheet, version_number, column_ids)
        # a version reads as it was: nothing of it is being computed
        live = Live(()) if version_number else live_states(connection, sheet.no)
    shown = _choose(columns, column_ids)
    window, size = _bounded(store, window, snapshot, shown)
    start, count = rows_of(window, snapshot.manifest)
    with ExitStack() as own:
        if size > LARGE_BYTES:
            (own if held is None else held).enter_context(store.large_pages.turn())
        rows = rows_at(store, snapshot, shown, start, count, live)
    if window.descending:
        rows.reverse()
    page = page_of(store.cursor_key, window, rows, lambda row: row.row_no)
    return RowPage(page, tuple(shown), snapshot.manifest.row_count, version)


def _bounded(
    store: Store, window: Window, snapshot: Snapshot, columns: Sequence[Column]
) -> tuple[Window, int]:
    """Narrow a window until what it shows can be held in memory; return about how many bytes that is, too."""
    column_nos = [column.no for column in columns]
    limit = max(1, min(window.request.limit, MOST_CELLS // max(1, len(columns))))
    while True:
        window = window.narrowed(limit)
        size = rows_bytes(store.segments, snapshot, column_nos, *rows_of(window, snapshot.manifest))
        if limit == 1 or size <= MOST_BYTES:
            return window, size
        limit //= 2


def _state(
    store: Store,
    connection: Connection,
    sheet: Sheet,
    version_number: int | None,
    column_ids: Sequence[UUID] | None,
) -> tuple[Snapshot, Sequence[Column], int]:
    if version_number is None:
        snapshot = store.snapshots.get(connection, sheet.head_no)
        return snapshot, select_columns(connection, sheet.no, column_ids), sheet.version_count
    state = find_version_state(connection, sheet.no, version_number)
    if state is None:
        raise NotFound("No such version")
    snapshot_no, structure = state
    return store.snapshots.get(connection, snapshot_no), structure.columns, version_number


def _choose(columns: Sequence[Column], column_ids: Sequence[UUID] | None) -> Sequence[Column]:
    if column_ids is None:
        return columns
    wanted = set(column_ids)
    if not wanted <= {column.id for column in columns}:
        raise NotFound("No such column")
    return [column for column in columns if column.id in wanted]


def rows_at(
    store: Store,
    snapshot: Snapshot,
    columns: Sequence[Column],
    start: int,
    count: int,
    live: Live | None = None,
) -> list[Row]:
    """Return rows of a snapshot with the cells of some columns, as they read while others are computed."""
    numbers = row_numbers(snapshot.manifest, start, count)
    values = read_columns(store.segments, snapshot, [column.no for column in columns], start, count)
    if live:
        for column, found in zip(columns, values, strict=True):
            if live.has(column.no):
                found[:] = [
                    (*written[:3], live.state(column.no, number, written[3]))
                    for number, written in zip(numbers, found, strict=True)
                ]
    key = store.cell_key
    return [
        Row(
            start + at,
            number,
            tuple(
                Cell(cell_id(key, CellAddress(column.no, number)), column.id, start + at, *found[at])
                for column, found in zip(columns, values, strict=True)
            ),
        )
        for at, number in enumerate(numbers)
    ]
