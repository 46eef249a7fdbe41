"""Folders: made, and found by their path (E29)."""

from typing import Annotated

from fastapi import Query

from api.deps import OpenStore, Who
from api.openapi import errors
from api.routing import guarded_router, needs
from api.schemas.base import check_workspace_id
from api.schemas.folders import FolderBody, FolderCreated, FolderId, FolderShape
from storage import folders
from storage.domain.errors import Conflict, NotFound

router = guarded_router(prefix="/api/public/v2/folders", tags=["folders"])


@router.post("", status_code=201, summary="Create a folder", responses=errors(Conflict, NotFound))
@needs("write:folder")
def create_folder(store: OpenStore, who: Who, body: FolderBody) -> FolderCreated:
    check_workspace_id(who, body.workspace_id)
    folder = folders.create_folder(store, who, name=body.name, parent_id=body.parent_id)
    return FolderCreated(id=folder.id, folder=FolderShape.of(folder))


@router.get("/resolve-id", summary="Resolve a folder id by path", responses=errors(NotFound))
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
) -> FolderId:
    return FolderId(id=folders.resolve_folder_id(store, who, path))
