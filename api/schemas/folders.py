"""Wire shapes of folders."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import StringConstraints

from api.schemas.base import Answer, Body, WireInt, example
from storage.domain.folders import Folder

_FOLDER = {
    "id": 2,
    "workspace_id": 1,
    "parent_id": None,
    "name": "Support",
    "created_at": "2026-01-05T09:30:00Z",
    "updated_at": "2026-01-05T09:30:00Z",
}


class FolderBody(Body):
    model_config = example({"name": "Support", "parent_id": None})

    name: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    parent_id: WireInt | None = None
    workspace_id: WireInt | None = None


class FolderShape(Answer):
    model_config = example(_FOLDER)

    id: int
    workspace_id: int
    parent_id: int | None
    name: str
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, folder: Folder) -> Self:
        return cls(
            id=folder.id,
            workspace_id=folder.workspace_id,
            parent_id=folder.parent_id,
            name=folder.name,
            created_at=folder.created_at,
            updated_at=folder.updated_at,
        )


class FolderCreated(Answer):
    model_config = example({"success": True, "message": "Folder created", "id": 2, "folder": _FOLDER})

    success: Literal[True] = True
    message: str = "Folder created"
    id: int
    folder: FolderShape


class FolderId(Answer):
    model_config = example({"id": 2})

    id: int
