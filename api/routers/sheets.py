"""Sheets: list, get (E9), delete (E11); their columns, rows and cells (E18)."""

from typing import Annotated
from uuid import UUID

from fastapi import Query
from starlette.responses import Response

from api.deps import OpenRuns, OpenStore, Who
from api.paths import form_only, sheet_path, table_path
from api.rendering import PlainJson
from api.routing import guarded_router, needs
from api.schemas.cells import CellAnswer, RowsAnswer, spell_cell, spell_rows
from api.schemas.pages import Cursor, Limit, LongLimit, Order, PageOut, page_out
from api.schemas.sheets import ColumnOut, SheetAnswer, SheetOut
from api.schemas.tables import Done
from storage import cells, columns, rows, sheets
from storage.domain.errors import Invalid, Problem
from storage.domain.paging import PageRequest

router = guarded_router(prefix="/api/public/v2/tables/{table_id}/sheets", tags=["sheets"])


@router.get("", summary="List sheets")
@needs("read", path=table_path)
def list_sheets(
    store: OpenStore, who: Who, table_id: UUID, cursor: Cursor = None, limit: Limit = 20, order: Order = "asc"
) -> PageOut[SheetOut]:
    """List the sheets of a table by index."""
    page = sheets.list_sheets(store, who, table_id=table_id, request=PageRequest(limit, order, cursor))
    return page_out(page, SheetOut.of)


@router.get("/{sheet_id}", summary="Get a sheet")
@needs("read", path=form_only("table_id", "sheet_id"))
def get_sheet(store: OpenStore, who: Who, table_id: UUID, sheet_id: UUID) -> SheetAnswer:
    """Return a sheet with its rows and its current version number."""
    found = sheets.get_sheet(store, who, table_id=table_id, sheet_id=sheet_id)
    return SheetAnswer(sheet=SheetOut.of(found))


@router.delete("/{sheet_id}", summary="Delete a sheet")
@needs("write:table", path=sheet_path)
def delete_sheet(store: OpenStore, runs: OpenRuns, who: Who, table_id: UUID, sheet_id: UUID) -> Done:
    """Delete a sheet; work under way on it ends failed."""
    for operation in sheets.delete_sheet(store, who, table_id=table_id, sheet_id=sheet_id):
        runs.terminate_soon(operation)
    return Done(message="Sheet deleted")


@router.get("/{sheet_id}/columns", summary="List columns")
@needs("read", path=sheet_path)
def list_columns(
    store: OpenStore,
    who: Who,
    table_id: UUID,
    sheet_id: UUID,
    cursor: Cursor = None,
    limit: LongLimit = 100,
    order: Order = "asc",
) -> PageOut[ColumnOut]:
    """List the columns of a sheet by position."""
    request = PageRequest(limit, order, cursor)
    page = columns.list_columns(store, who, table_id=table_id, sheet_id=sheet_id, request=request)
    return page_out(page, lambda column: ColumnOut.of(column, sheet_id, who.workspace_id))


ColumnIds = Annotated[
    list[str] | None, Query(description="Columns to show; repeated, or separated by commas.")
]


@router.get("/{sheet_id}/rows", summary="Read rows", response_model=RowsAnswer)
@needs("read", path=sheet_path)
def list_rows(
    store: OpenStore,
    who: Who,
    table_id: UUID,
    sheet_id: UUID,
    version_number: Annotated[
        int | None, Query(ge=1, le=2_147_483_647, description="As this version had them.")
    ] = None,
    column_ids: ColumnIds = None,
    cursor: Cursor = None,
    limit: LongLimit = 100,
    order: Order = "asc",
) -> Response:
    """Read rows with their cells, by index.

    Pages of many columns or long values hold fewer rows than asked for: `pagination.limit` says how many.
    """
    found = rows.list_rows(
        store,
        who,
        table_id=table_id,
        sheet_id=sheet_id,
        request=PageRequest(limit, order, cursor),
        version_number=version_number,
        column_ids=_ids(column_ids),
    )
    filters = {"version_number": version_number, "column_ids": column_ids}
    return PlainJson(spell_rows(found, sheet_id, who.workspace_id, filters))


@router.get("/{sheet_id}/cells/{cell_id}", summary="Get a cell", response_model=CellAnswer)
@needs("read", path=form_only("table_id", "sheet_id", "cell_id"))
def get_cell(store: OpenStore, who: Who, table_id: UUID, sheet_id: UUID, cell_id: UUID) -> Response:
    """Return a cell as it stands now."""
    found = cells.get_cell(store, who, table_id=table_id, sheet_id=sheet_id, cell_id=cell_id)
    return PlainJson({"success": True, "cell": spell_cell(found, sheet_id)})


def _ids(given: list[str] | None) -> list[UUID] | None:
    if given is None:
        return None
    try:
        return [UUID(part) for one in given for part in one.split(",")]
    except ValueError as error:
        problem = Problem(("query", "column_ids"), "must be column ids", "uuid_parsing")
        raise Invalid(problem) from error
