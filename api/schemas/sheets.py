"""Wire shapes of sheets and of their columns."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from api.schemas.base import Answer, Body, WireInt, example
from api.schemas.tables import Title
from storage.domain.columns import Column
from storage.domain.sheets import Sheet


class SheetOut(Answer):
    """A sheet; `version_count` is its current version number."""

    id: UUID
    table_id: UUID
    workspace_id: int
    title: str
    index: int
    row_count: int
    version_count: int
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, sheet: Sheet) -> "SheetOut":
        return cls(**{name: getattr(sheet, name) for name in cls.model_fields})


class SheetUpdate(Body):
    """Body of E10; `expected_row_count` and `eval_run_status` of existing clients are not looked at."""

    model_config = example({"title": "Answers", "index": 0})

    title: Title | None = None
    index: WireInt | None = None
    expected_row_count: Any = None
    eval_run_status: Any = None


class SheetAnswer(Answer):
    success: Literal[True] = True
    sheet: SheetOut


class SheetUpdated(SheetAnswer):
    """`version` is the sheet's version number after the change."""

    version: int


class DependencyOut(Answer):
    """One column that a column reads, and for which key of its configuration."""

    column_id: UUID
    reference_type: str
    config_key: str
    config_meta: Mapping[str, Any]


class ColumnOut(Answer):
    """A column; `position_rank` orders the columns of a sheet, `config` names other columns by id."""

    id: UUID
    sheet_id: UUID
    workspace_id: int
    title: str
    type: str
    config: Mapping[str, Any]
    position_rank: int
    is_output_column: bool
    dependencies: list[DependencyOut]

    @classmethod
    def of(cls, column: Column, sheet_id: UUID, workspace_id: int) -> "ColumnOut":
        return cls(
            id=column.id,
            sheet_id=sheet_id,
            workspace_id=workspace_id,
            title=column.title,
            type=column.type,
            config=column.config,
            position_rank=column.position_rank,
            is_output_column=column.is_output_column,
            dependencies=[DependencyOut.model_validate(edge) for edge in column.dependencies],
        )
