"""Sheets: list, get (E9), change (E10), delete (E11), bring back."""

from uuid import UUID

from api.deps import OpenRuns, OpenStore, Who
from api.openapi import errors
from api.paths import deleted_sheet_path, form_only, sheet_path, table_path
from api.routing import guarded_router, needs
from api.schemas.pages import Cursor, Limit, Order, PageOut, page_out
from api.schemas.sheets import SheetAnswer, SheetOut, SheetUpdate, SheetUpdated
from api.schemas.tables import Done
from storage import sheet_changes, sheets
from storage.domain.errors import Conflict
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


@router.patch("/{sheet_id}", summary="Rename or move a sheet")
@needs("write:table", path=sheet_path)
def change_sheet(
    store: OpenStore, who: Who, table_id: UUID, sheet_id: UUID, body: SheetUpdate
) -> SheetUpdated:
    """Rename a sheet, or move it to another place in its table; a change makes a version."""
    found = sheet_changes.change_sheet(
        store, who, table_id=table_id, sheet_id=sheet_id, title=body.title, index=body.index
    )
    return SheetUpdated(sheet=SheetOut.of(found), version=found.version_count)


@router.post("/{sheet_id}/undelete", summary="Bring a sheet back", responses=errors(Conflict))
@needs("write:table", path=deleted_sheet_path)
def undelete_sheet(store: OpenStore, who: Who, table_id: UUID, sheet_id: UUID) -> SheetAnswer:
    """Bring a sheet back that was deleted at most 7 days ago, to its place."""
    found = sheet_changes.undelete_sheet(store, who, table_id=table_id, sheet_id=sheet_id)
    return SheetAnswer(sheet=SheetOut.of(found))


@router.delete("/{sheet_id}", summary="Delete a sheet")
@needs("write:table", path=sheet_path)
def delete_sheet(store: OpenStore, runs: OpenRuns, who: Who, table_id: UUID, sheet_id: UUID) -> Done:
    """Delete a sheet; work under way on it ends failed."""
    for operation in sheets.delete_sheet(store, who, table_id=table_id, sheet_id=sheet_id):
        runs.terminate_soon(operation)
    return Done(message="Sheet deleted")
