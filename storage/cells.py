"""Cells: one is read by its computed id, without a search, and written into the sheet's overlay."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from storage.audit import record_audit
from storage.domain.cells import Cell, CellEdit, check_value, display_value, same_value
from storage.domain.columns import TEXT, Column
from storage.domain.errors import NotFound, WrongColumnType
from storage.domain.ids import CellAddress, find_cell_address
from storage.domain.keys import Principal
from storage.domain.overlay import Entry, Patch
from storage.engine.catalog import Connection
from storage.engine.rows.columns import find_column_by_no
from storage.engine.sheet_rows import read_columns
from storage.engine.snapshots import Snapshot, commit
from storage.recalculations import live_states
from storage.sheets import require_sheet
from storage.staleness import mark_dependents
from storage.store import Store


def get_cell(store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, cell_id: UUID) -> Cell:
    """Return a cell as it stands now (E18).

    Raises:
        NotFound: no such sheet; or the id is forged, of another sheet, or of a deleted row or column.
    """
    address = find_cell_address(store.cell_key, cell_id)
    with store.catalog.read() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        head = store.snapshots.get(connection, sheet.head_no)
        column, index = _place(connection, head, address)
        live = live_states(connection, sheet.no) if column.computed else None
    cell = _read(store, head, cell_id, column, index)
    if live and address:
        return replace(cell, state=live.state(column.no, address.row_no, cell.state))
    return cell


def check_cell(store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, cell_id: UUID) -> None:
    """Raise NotFound unless there is such a cell; its value is not read."""
    address = find_cell_address(store.cell_key, cell_id)
    with store.catalog.read() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        _place(connection, store.snapshots.get(connection, sheet.head_no), address)


def edit_cell(
    store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, cell_id: UUID, value: Any
) -> CellEdit:
    """Write a value into a text cell; an equal one changes nothing.

    Raises:
        NotFound: as `get_cell`.
        WrongColumnType: the column is computed.
        Invalid: the value has more than 8 MB.
        Unavailable: the disk is full.
    """
    check_value(value, "value")
    before = get_cell(store, who, table_id=table_id, sheet_id=sheet_id, cell_id=cell_id)
    address = find_cell_address(store.cell_key, cell_id)
    now = store.now()
    with store.catalog.transaction() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        head = store.snapshots.get(connection, sheet.head_no)
        column, index = _place(connection, head, address)
        if column.type != TEXT:
            raise WrongColumnType(f"{column.title} is computed: only text cells are written")
        if same_value(before.value, value):
            return CellEdit(before, 0, sheet.version_count)
        row_no = address.row_no if address else 0
        changed = {column.no: frozenset({row_no})}
        marked = mark_dependents(connection, store, head, changed, now, next_row_no=sheet.next_row_no)
        cells = {**marked.patch.cells, column.no: {row_no: Entry(value, now)}}
        patch = Patch(cells, marked.patch.restated)
        commit(connection, head, head.manifest, patch=patch, next_row_no=sheet.next_row_no, now=now)
        record_audit(
            connection,
            store,
            who,
            action="update",
            kind="cell",
            entity_id=cell_id,
            details={"sheet_id": str(sheet.id), "column_id": str(column.id)},
        )
    cell = Cell(cell_id, column.id, index, value, display_value(value), now)
    return CellEdit(cell, marked.stale_count, sheet.version_count)


def _place(connection: Connection, head: Snapshot, address: CellAddress | None) -> tuple[Column, int]:
    """Return the column and the row index of an address in a sheet's head."""
    column = None if address is None else find_column_by_no(connection, head.sheet_no, address.column_no)
    index = None if address is None else head.manifest.find_index(address.row_no)
    if column is None or index is None:
        raise NotFound("No such cell")
    return column, index


def _read(store: Store, head: Snapshot, cell_id: UUID, column: Column, index: int) -> Cell:
    ((written,),) = read_columns(store.segments, head, [column.no], index, 1)
    return Cell(cell_id, column.id, index, *written)
