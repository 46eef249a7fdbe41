"""Wire shapes of tables."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import StringConstraints

from api.schemas.base import Answer, Body, WireInt, example
from storage.domain.tables import Table, Unchanged

Title = Annotated[str, StringConstraints(min_length=1, max_length=255)]


class TableCreate(Body):
    """Body of E6."""

    model_config = example({"title": "Support answers", "folder_id": None})

    title: Title | None = None
    folder_id: WireInt | None = None
    workspace_id: WireInt | None = None


class TableUpdate(Body):
    """What is absent or null stays, but a `folder_id` of null is the root."""

    model_config = example({"title": "Support answers, May", "folder_id": None})

    title: Title | None = None
    folder_id: WireInt | None = None

    @property
    def folder(self) -> int | Unchanged | None:
        return self.folder_id if "folder_id" in self.model_fields_set else Unchanged.UNCHANGED


class TableOut(Answer):
    id: UUID
    workspace_id: int
    title: str
    folder_id: int | None
    sheet_count: int
    created_at: datetime
    updated_at: datetime
    sheet_row_counts: dict[UUID, int]

    @classmethod
    def of(cls, table: Table) -> "TableOut":
        return cls(
            id=table.id,
            workspace_id=table.workspace_id,
            title=table.title,
            folder_id=table.folder_id,
            sheet_count=table.sheet_count,
            created_at=table.created_at,
            updated_at=table.updated_at,
            sheet_row_counts=dict(table.sheet_row_counts),
        )


class TableAnswer(Answer):
    success: Literal[True] = True
    table: TableOut


class TableCreated(TableAnswer):
    message: str


class Done(Answer):
    success: Literal[True] = True
    message: str
