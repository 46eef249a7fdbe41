"""Wire shapes of tables."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, StringConstraints

from storage.domain.tables import Table

Title = Annotated[str, StringConstraints(min_length=1, max_length=255)]


class TableCreate(BaseModel):
    """Body of E6."""

    model_config = ConfigDict(extra="forbid")

    title: Title | None = None
    folder_id: int | None = None
    workspace_id: int | None = None


class TableOut(BaseModel):
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


class TableAnswer(BaseModel):
    success: Literal[True] = True
    table: TableOut


class TableCreated(TableAnswer):
    message: str


class Done(BaseModel):
    success: Literal[True] = True
    message: str
