"""Tables: create (E6), list, get (E7), change, delete (E20), bring back."""

from typing import Annotated
from uuid import UUID

from fastapi import Query

from api.deps import OpenRuns, OpenStore, Who
from api.openapi import errors
from api.paths import deleted_table_path, form_only, table_path
from api.routing import guarded_router, needs
from api.schemas.base import check_workspace_id
from api.schemas.pages import Cursor, Limit, Order, PageOut, page_out
from api.schemas.tables import Done, TableAnswer, TableCreate, TableCreated, TableOut, TableUpdate
from storage import tables
from storage.domain.errors import Conflict, NotFound
from storage.domain.paging import PageRequest
from storage.domain.prompts import MAX_INTEGER

router = guarded_router(prefix="/api/public/v2/tables", tags=["tables"])


@router.post("", status_code=201, summary="Create a table", responses=errors(NotFound))
@needs("write:table")
def create_table(store: OpenStore, who: Who, body: TableCreate | None = None) -> TableCreated:
    """Create a table with Sheet 1, Column A and one empty row."""
    asked = body or TableCreate()
    check_workspace_id(who, asked.workspace_id)
    table = tables.create_table(store, who, title=asked.title, folder_id=asked.folder_id)
    return TableCreated(message="Table created", table=TableOut.of(table))


@router.get("", summary="List tables")
@needs("read")
def list_tables(
    store: OpenStore,
    who: Who,
    folder_id: Annotated[int | None, Query(ge=1, le=MAX_INTEGER)] = None,
    name: Annotated[str | None, Query(description="Any part of the title, in any case.")] = None,
    cursor: Cursor = None,
    limit: Limit = 20,
    order: Order = "desc",
) -> PageOut[TableOut]:
    """List the workspace's tables by age."""
    request = PageRequest(limit, order, cursor)
    page = tables.list_tables(store, who, request=request, folder_id=folder_id, name=name)
    return page_out(page, TableOut.of, folder_id=folder_id, name=name)


@router.get("/{table_id}", summary="Get a table")
@needs("read", path=form_only("table_id"))
def get_table(store: OpenStore, who: Who, table_id: UUID) -> TableAnswer:
    """Return a table with the rows of each of its sheets."""
    return TableAnswer(table=TableOut.of(tables.get_table(store, who, table_id)))


@router.patch("/{table_id}", summary="Rename or move a table")
@needs("write:table", path=table_path)
def change_table(store: OpenStore, who: Who, table_id: UUID, body: TableUpdate) -> TableAnswer:
    """Rename a table, or move it to another folder."""
    found = tables.change_table(store, who, table_id, title=body.title, folder_id=body.folder)
    return TableAnswer(table=TableOut.of(found))


@router.post("/{table_id}/undelete", summary="Bring a table back", responses=errors(Conflict))
@needs("write:table", path=deleted_table_path)
def undelete_table(store: OpenStore, who: Who, table_id: UUID) -> TableAnswer:
    """Bring a table back that was deleted at most 7 days ago, with its sheets."""
    return TableAnswer(table=TableOut.of(tables.undelete_table(store, who, table_id)))


@router.delete("/{table_id}", summary="Delete a table")
@needs("write:table", path=table_path)
def delete_table(store: OpenStore, runs: OpenRuns, who: Who, table_id: UUID) -> Done:
    """Delete a table and its sheets; work under way on them ends failed."""
    for operation in tables.delete_table(store, who, table_id):
        runs.terminate_soon(operation)
    return Done(message="Table deleted")
