"""Cells: one is read by its computed id, without a search."""

from uuid import UUID

from storage.domain.cells import Cell
from storage.domain.errors import NotFound
from storage.domain.ids import find_cell_address
from storage.domain.keys import Principal
from storage.engine.rows.columns import find_column_by_no
from storage.engine.sheet_rows import read_columns
from storage.sheets import require_sheet
from storage.store import Store


def get_cell(store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, cell_id: UUID) -> Cell:
    """Return a cell as it stands now (E18).

    Raises:
        NotFound: no such sheet; or the id is forged, of another sheet, or of a deleted row or column.
    """
    address = find_cell_address(store.cell_key, cell_id)
    with store.catalog.read() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        column = None if address is None else find_column_by_no(connection, sheet.no, address.column_no)
        manifest = store.snapshots.get(connection, sheet.head_no).manifest
    index = None if address is None else manifest.find_index(address.row_no)
    if column is None or index is None:
        raise NotFound("No such cell")
    ((written,),) = read_columns(store.segments, manifest, [column.no], index, 1)
    return Cell(cell_id, column.id, index, *written)
