"""Columns: list, create (E16), update (E17), delete (E21)."""

from uuid import UUID

from starlette.responses import Response

from api.deps import OpenRuns, OpenStore, Who
from api.openapi import errors
from api.paths import column_path, sheet_path
from api.rendering import PlainJson
from api.routing import guarded_router, needs
from api.schemas.cells import spell_cell
from api.schemas.columns import ColumnChanged, ColumnCreate, ColumnCreated, ColumnGone, ColumnPatch
from api.schemas.pages import Cursor, LongLimit, Order, PageOut, page_out
from api.schemas.sheets import ColumnOut
from storage import column_changes, columns, new_columns
from storage.domain.errors import Conflict, DependencyCycle, InvalidConfig
from storage.domain.paging import PageRequest

router = guarded_router(prefix="/api/public/v2/tables/{table_id}/sheets/{sheet_id}/columns", tags=["columns"])
# a configuration has 1 MB at most, so a body has no reason to be much larger
_MOST_BYTES = 2 * 1024 * 1024


@router.get("", summary="List columns")
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
    """List the columns of a sheet by position, with what each reads."""
    request = PageRequest(limit, order, cursor)
    page = columns.list_columns(store, who, table_id=table_id, sheet_id=sheet_id, request=request)
    return page_out(page, lambda column: ColumnOut.of(column, sheet_id, who.workspace_id))


@router.post(
    "",
    status_code=201,
    summary="Create a column",
    response_model=ColumnCreated,
    responses=errors(Conflict, InvalidConfig, DependencyCycle),
)
@needs("write:table", path=sheet_path, max_body_bytes=_MOST_BYTES)
def create_column(
    store: OpenStore, runs: OpenRuns, who: Who, table_id: UUID, sheet_id: UUID, body: ColumnCreate
) -> Response:
    """Add a column. The cells of a computed one are queued for computation at once."""
    made = new_columns.create_column(store, who, table_id=table_id, sheet_id=sheet_id, new=body.new_column())
    if made.operation is not None:
        runs.launch_soon(made.operation, str(sheet_id))
    answer = {
        "success": True,
        "column": ColumnOut.of(made.column, sheet_id, who.workspace_id).model_dump(),
        "cells": [spell_cell(cell, sheet_id) for cell in made.cells],
        "cell_count": made.cell_count,
        "operation_id": made.operation and made.operation.id,
        "version": made.version_number,
    }
    return PlainJson(answer, status_code=201)


@router.patch(
    "/{column_id}",
    summary="Update a column",
    responses=errors(Conflict, InvalidConfig, DependencyCycle),
)
@needs("write:table", path=column_path, max_body_bytes=_MOST_BYTES)
def update_column(
    store: OpenStore, who: Who, table_id: UUID, sheet_id: UUID, column_id: UUID, body: ColumnPatch
) -> ColumnChanged:
    """Change a column; what its cells and those that read them hold turns stale, and nothing is started."""
    found = column_changes.update_column_of(
        store, who, table_id=table_id, sheet_id=sheet_id, column_id=column_id, change=body.change()
    )
    return ColumnChanged.of(found, sheet_id, who.workspace_id)


@router.delete("/{column_id}", summary="Delete a column")
@needs("write:table", path=column_path)
def delete_column(store: OpenStore, who: Who, table_id: UUID, sheet_id: UUID, column_id: UUID) -> ColumnGone:
    """Delete a column; cells that read it turn stale with an error that names it."""
    found = column_changes.delete_column(
        store, who, table_id=table_id, sheet_id=sheet_id, column_id=column_id
    )
    return ColumnGone.of(found)
