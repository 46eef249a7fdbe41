"""Versions of a sheet: create and restore (E14), list (E15), read whole, compare."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import Query

from api.deps import OpenStore, Who
from api.openapi import errors
from api.paths import form_only, sheet_path, version_of
from api.routing import guarded_router, needs
from api.schemas.pages import Cursor, Limit, Order, PageOut, page_out
from api.schemas.versions import VersionAnswer, VersionCreate, VersionOut, VersionsDiff
from storage import restores, version_diff, versions
from storage.domain.errors import Conflict, InvalidCursor
from storage.domain.paging import PageRequest

router = guarded_router(
    prefix="/api/public/v2/tables/{table_id}/sheets/{sheet_id}/versions", tags=["versions"]
)


@router.post("", status_code=201, summary="Create a sheet version", responses=errors(Conflict))
@needs("write:table", path=sheet_path)
def create_version(
    store: OpenStore, who: Who, table_id: UUID, sheet_id: UUID, body: VersionCreate
) -> VersionAnswer:
    """Save the sheet's state under a name, or bring an earlier version back as a new one."""
    version = restores.create_version(
        store,
        who,
        table_id=table_id,
        sheet_id=sheet_id,
        name=body.name,
        source_version_id=body.source_version_id,
    )
    return VersionAnswer(version=VersionOut.of(version, sheet_id))


@router.get("", summary="List sheet versions", responses=errors(InvalidCursor))
@needs("read", path=sheet_path)
def list_versions(
    store: OpenStore,
    who: Who,
    table_id: UUID,
    sheet_id: UUID,
    cursor: Cursor = None,
    limit: Limit = 20,
    sort: Annotated[Literal["version_number"], Query()] = "version_number",  # noqa: ARG001 - the only one
    order: Order = "desc",
) -> PageOut[VersionOut]:
    """List the versions of a sheet by number."""
    request = PageRequest(limit, order, cursor)
    page = versions.list_versions(store, who, table_id=table_id, sheet_id=sheet_id, request=request)
    return page_out(page, lambda version: VersionOut.listed(version, sheet_id))


Wanted = Annotated[str, Query(description="A version's number or id.")]


@router.get("/diff", summary="Compare two sheet versions")
@needs("read", path=sheet_path)
def diff_versions(
    store: OpenStore,
    who: Who,
    table_id: UUID,
    sheet_id: UUID,
    before: Annotated[str, Query(alias="from", description="A version's number or id.")],
    to: Wanted,
) -> VersionsDiff:
    """Say what differs: columns, rows, and cells of the rows and columns of both."""
    diff = version_diff.diff_versions(
        store, who, table_id=table_id, sheet_id=sheet_id, before=version_of(before), after=version_of(to)
    )
    return VersionsDiff.of(diff, sheet_id, who.workspace_id)


@router.get("/{version_id}", summary="Get a sheet version")
@needs("read", path=form_only("table_id", "sheet_id"))
def get_version(store: OpenStore, who: Who, table_id: UUID, sheet_id: UUID, version_id: str) -> VersionAnswer:
    """Return a version whole, by its id or number; its rows are read with `rows?version_number=`."""
    found = version_diff.get_version(
        store, who, table_id=table_id, sheet_id=sheet_id, version=version_of(version_id)
    )
    return VersionAnswer(version=VersionOut.of(found, sheet_id))
