"""New columns (E16): computed ones begin stale, with the operation queued that computes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from storage.audit import record_audit
from storage.column_binding import Bound, Given, bind, read_before
from storage.domain.cells import COMPLETED, STALE, Cell, CellState, display_value
from storage.domain.columns import MOST_COLUMNS, TEXT, Column
from storage.domain.errors import Conflict
from storage.domain.ids import CellAddress, cell_id
from storage.domain.keys import Principal
from storage.domain.manifests import Fill, Manifest
from storage.domain.operations import Operation
from storage.domain.ranks import Placed, place
from storage.domain.sheets import EMPTY, Sheet
from storage.domain.versions import columns_added
from storage.engine.catalog import Connection
from storage.engine.rows.column_edges import replace_edges
from storage.engine.rows.columns import insert_column, renumber_columns, select_columns
from storage.engine.sheet_rows import row_numbers
from storage.engine.snapshots import commit
from storage.recalculations import enqueue_column
from storage.sheets import require_sheet
from storage.store import Store
from storage.structure import record_structure

SHOWN_CELLS = 1_000


@dataclass(frozen=True, slots=True)
class NewColumn:
    """What a caller asks for; `config` names columns by title or id, `position` counts from 0."""

    title: str
    type: str
    config: Given
    dependencies: Sequence[Given] | None = None
    is_output_column: bool = False
    position: int | None = None


@dataclass(frozen=True, slots=True)
class ColumnCreated:
    """The column with its first cells; `operation` computes it, None where nothing is to be computed."""

    column: Column
    cells: list[Cell]
    cell_count: int
    operation: Operation | None
    version_number: int


def create_column(
    store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, new: NewColumn
) -> ColumnCreated:
    """Add a column to a sheet, whatever its rows, for the cost of a manifest.

    Raises:
        NotFound: no such sheet.
        Conflict: the title is taken, or the sheet is full.
        InvalidConfig: the configuration does not fit, or a source is missing.
    """
    reads = read_before(store, who, new.type, new.config)
    now = store.now()
    with store.catalog.transaction() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        columns = select_columns(connection, sheet.no)
        check_title(columns, new.title)
        if len(columns) >= MOST_COLUMNS:
            raise Conflict(f"The sheet has {MOST_COLUMNS} columns; no more fit")
        bound = bind(
            connection,
            who,
            kind=new.type,
            config=new.config,
            dependencies=new.dependencies,
            columns=columns,
            code_reads=reads,
        )
        column = insert_bound(connection, store, sheet, columns, new, bound, now)
        head = store.snapshots.get(connection, sheet.head_no)
        fill = Fill(None, now, STALE) if column.computed else Fill(EMPTY, now)
        manifest = head.manifest.with_fill(column.no, fill)
        snapshot = commit(connection, head, manifest, next_row_no=sheet.next_row_no, now=now)
        number = record_structure(
            connection,
            store,
            who,
            sheet,
            snapshot=snapshot,
            name=f"Column {column.title} added",
            deltas=[columns_added([column])],
            now=now,
        )
        record_audit(
            connection,
            store,
            who,
            action="create",
            kind="column",
            entity_id=column.id,
            details={"sheet_id": str(sheet.id), "type": column.type},
        )
        operation = None
        if column.computed and manifest.row_count:
            operation = enqueue_column(connection, store, who, sheet, column, manifest.row_count)
    cells = _first_cells(store, manifest, column, operation, now)
    return ColumnCreated(column, cells, manifest.row_count, operation, number)


def check_title(columns: Sequence[Column], title: str, apart_from: Column | None = None) -> None:
    """Raise Conflict when another column of the sheet has the title."""
    if any(column.title == title and column.no != (apart_from and apart_from.no) for column in columns):
        raise Conflict(f"The sheet has a column {title!r}")


def place_column(connection: Connection, others: Sequence[Column], position: int | None) -> int:
    """Return the rank of a column at a position among others, which are renumbered where no gap is left."""
    placed: Placed = place([one.position_rank for one in others], position)
    if placed.renumbered is not None:
        renumber_columns(connection, [one.no for one in others], placed.renumbered)
    return placed.rank


def insert_bound(
    connection: Connection,
    store: Store,
    sheet: Sheet,
    columns: Sequence[Column],
    new: NewColumn,
    bound: Bound,
    now: datetime,
) -> Column:
    """Add the row of a column whose configuration is bound; its cells are laid by the caller."""
    values: dict[str, Any] = {
        "id": store.new_id(),
        "sheet_no": sheet.no,
        "workspace_id": sheet.workspace_id,
        "title": new.title,
        "type": new.type,
        "config": bound.config,
        "position_rank": place_column(connection, columns, new.position),
        "is_output_column": new.is_output_column,
        "dependencies": bound.edges,
        "created_at": now,
    }
    column = insert_column(connection, values)
    replace_edges(connection, column.no, bound.source_nos)
    return column


def _first_cells(
    store: Store, manifest: Manifest, column: Column, operation: Operation | None, now: datetime
) -> list[Cell]:
    value = None if column.type != TEXT else EMPTY
    state = COMPLETED if operation is None else CellState("queued", execution_id=operation.id)
    return [
        Cell(
            cell_id(store.cell_key, CellAddress(column.no, row_no)),
            column.id,
            index,
            value,
            display_value(value),
            now,
            state,
        )
        for index, row_no in enumerate(row_numbers(manifest, 0, SHOWN_CELLS))
    ]
