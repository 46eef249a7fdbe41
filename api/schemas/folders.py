"""Wire shapes of folders and of what lies in them."""

from datetime import datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import Field, StringConstraints

from api.schemas.base import Answer, Body, WireInt, example
from storage.domain.entities import MOST_MOVED, EntityRef, EntityType, Entry
from storage.domain.folders import Folder, FolderChange

_FOLDER = {
    "id": 2,
    "workspace_id": 1,
    "parent_id": None,
    "name": "Support",
    "created_at": "2026-01-05T09:30:00Z",
    "updated_at": "2026-01-05T09:30:00Z",
}
FolderName = Annotated[str, StringConstraints(min_length=1, max_length=255)]


class FolderBody(Body):
    model_config = example({"name": "Support", "parent_id": None})

    name: FolderName
    parent_id: WireInt | None = None
    workspace_id: WireInt | None = None


class FolderPatch(Body):
    """What changes; an absent or null name stays, and `parent_id: null` moves the folder to the root."""

    model_config = example({"name": "Support 2026", "parent_id": 4})

    name: FolderName | None = None
    parent_id: Annotated[WireInt | None, Field(description="The folder to lie in; null: the root.")] = None
    workspace_id: WireInt | None = None

    def change(self) -> FolderChange:
        return FolderChange(self.name, moves="parent_id" in self.model_fields_set, parent_id=self.parent_id)


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


class FolderAnswer(Answer):
    model_config = example({"success": True, "folder": _FOLDER})

    success: Literal[True] = True
    folder: FolderShape


class FolderId(Answer):
    model_config = example({"id": 2})

    id: int


MovableType = Literal[
    "FOLDER", "PROMPT", "SNIPPET", "WORKFLOW", "DATASET", "REPORT", "AB_TEST", "INPUT_VARIABLE_SET"
]


class EntityRefShape(Body):
    """One entity; DATASET is a dataset group, SNIPPET a prompt whose latest version is a completion."""

    id: Annotated[WireInt, Field(ge=1)]
    type: MovableType = "FOLDER"


class MoveBody(Body):
    """Body of E28."""

    model_config = example(
        {"entities": [{"id": 12, "type": "PROMPT"}, {"id": 3, "type": "WORKFLOW"}], "folder_id": 2}
    )

    entities: Annotated[list[EntityRefShape], Field(min_length=1, max_length=MOST_MOVED)]
    folder_id: Annotated[WireInt | None, Field(description="Where to; null or absent: the root.")] = None
    workspace_id: WireInt | None = None

    def refs(self) -> list[EntityRef]:
        return [EntityRef(EntityType(entity.type), entity.id) for entity in self.entities]


class MovedEntities(Answer):
    model_config = example({"success": True, "moved_count": 2})

    success: Literal[True] = True
    moved_count: int = Field(description="Entities named, each once; all of them lie there now.")


class EntryOut(Answer):
    model_config = example(
        {
            "id": 12,
            "type": "PROMPT",
            "name": "support/answer",
            "folder_id": 2,
            "created_at": "2026-01-05T09:30:00Z",
            "updated_at": "2026-01-05T09:30:00Z",
        }
    )

    id: int | UUID = Field(description="A UUID for tables, a number for all else.")
    type: EntityType
    name: str
    folder_id: int | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, entry: Entry) -> Self:
        return cls(
            id=entry.id,
            type=entry.type,
            name=entry.name,
            folder_id=entry.folder_id,
            created_at=entry.created_at,
            updated_at=entry.updated_at,
        )
