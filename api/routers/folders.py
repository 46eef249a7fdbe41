"""Folders: made, changed, deleted, found by their path (E29); what lies in them, listed and moved (E28)."""

from typing import Annotated

from fastapi import Query

from api.deps import OpenStore, Who
from api.openapi import errors
from api.paths import folder_path
from api.routing import guarded_router, needs
from api.schemas.base import check_workspace_id
from api.schemas.folders import (
    EntryOut,
    FolderAnswer,
    FolderBody,
    FolderCreated,
    FolderId,
    FolderPatch,
    FolderShape,
    MoveBody,
    MovedEntities,
)
from api.schemas.pages import Cursor, Limit, Order, PageOut, page_out
from api.schemas.tables import Done
from storage import entities, folders
from storage.domain.entities import EntityType
from storage.domain.errors import Conflict, InvalidCursor, Malformed, NotFound
from storage.domain.keys import ANY_WRITE
from storage.domain.paging import PageRequest
from storage.domain.prompts import MAX_INTEGER

router = guarded_router(prefix="/api/public/v2/folders", tags=["folders"])


@router.post("", status_code=201, summary="Create a folder", responses=errors(Conflict, NotFound))
@needs("write:folder")
def create_folder(store: OpenStore, who: Who, body: FolderBody) -> FolderCreated:
    check_workspace_id(who, body.workspace_id)
    folder = folders.create_folder(store, who, name=body.name, parent_id=body.parent_id)
    return FolderCreated(id=folder.id, folder=FolderShape.of(folder))


@router.get("/resolve-id", summary="Resolve a folder id by path", responses=errors(Malformed, NotFound))
@needs("read")
def resolve_folder_id(
    store: OpenStore,
    who: Who,
    path: Annotated[
        str,
        Query(
            min_length=1,
            max_length=26_000,
            description=r"Names from the root, joined by dots; a dot within a name is `\.`.",
            examples=["Support.Release 1\\.0"],
        ),
    ],
    workspace_id: Annotated[int | None, Query(ge=1, le=MAX_INTEGER)] = None,
) -> FolderId:
    check_workspace_id(who, workspace_id)
    return FolderId(id=folders.resolve_folder_id(store, who, path))


@router.get(
    "/entities",
    summary="List what lies in a folder",
    description="By kind and then by age; without `folder_id` what lies at the root. A snippet is a prompt, "
    "and listed as one unless only snippets are asked for.",
    responses=errors(InvalidCursor, Malformed, NotFound),
)
@needs("read")
def list_entities(
    store: OpenStore,
    who: Who,
    folder_id: Annotated[int | None, Query(ge=1, le=MAX_INTEGER)] = None,
    type: Annotated[list[EntityType] | None, Query(description="Only these kinds.")] = None,  # noqa: A002
    filter_type: Annotated[list[EntityType] | None, Query(description="The same as `type`.")] = None,
    name: Annotated[str | None, Query(description="Any part of the name, in any case.")] = None,
    search_query: Annotated[str | None, Query(description="The same as `name`.")] = None,
    cursor: Cursor = None,
    limit: Limit = 20,
    order: Order = "asc",
    workspace_id: Annotated[int | None, Query(ge=1, le=MAX_INTEGER)] = None,
) -> PageOut[EntryOut]:
    check_workspace_id(who, workspace_id)
    kinds = list(dict.fromkeys([*(type or ()), *(filter_type or ())]))
    part = search_query if name is None else name
    page = entities.list_entities(
        store,
        who,
        request=PageRequest(limit, order, cursor),
        folder_id=folder_id,
        kinds=kinds,
        name=part,
    )
    return page_out(page, EntryOut.of, folder_id=folder_id, type=kinds or None, name=part)


@router.post(
    "/entities",
    summary="Move entities to a folder, all or none",
    description="The key needs `write` for the kind of every entity that is named.",
    responses=errors(Conflict, NotFound),
)
@needs(ANY_WRITE)
def move_entities(store: OpenStore, who: Who, body: MoveBody) -> MovedEntities:
    check_workspace_id(who, body.workspace_id)
    return MovedEntities(moved_count=entities.move_entities(store, who, body.refs(), body.folder_id))


@router.get("/{folder_id}", summary="Get a folder")
@needs("read", path=folder_path)
def get_folder(store: OpenStore, who: Who, folder_id: int) -> FolderAnswer:
    return FolderAnswer(folder=FolderShape.of(folders.get_folder(store, who, folder_id)))


@router.patch("/{folder_id}", summary="Rename or move a folder", responses=errors(Conflict))
@needs("write:folder", path=folder_path)
def update_folder(store: OpenStore, who: Who, folder_id: int, body: FolderPatch) -> FolderAnswer:
    """Rename a folder, move it with all that lies in it, or both."""
    check_workspace_id(who, body.workspace_id)
    return FolderAnswer(folder=FolderShape.of(folders.update_folder(store, who, folder_id, body.change())))


@router.delete("/{folder_id}", summary="Delete a folder", responses=errors(Conflict))
@needs("write:folder", path=folder_path)
def delete_folder(store: OpenStore, who: Who, folder_id: int) -> Done:
    """Delete a folder that holds nothing."""
    folders.delete_folder(store, who, folder_id)
    return Done(message="Folder deleted")
