"""Wire shapes of cells and of pages of rows."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from api.schemas.base import Answer
from api.schemas.pages import Pagination
from api.schemas.sheets import ColumnOut
from storage.domain.cells import Cell
from storage.domain.rows import RowPage


class RequestMetrics(Answer):
    """What the model calls of a computed cell took."""

    request_count: int
    request_ids: list[int]
    latency_ms: float
    price: float
    input_tokens: int
    output_tokens: int
    trace_ids: list[str]


class CellOut(Answer):
    """A cell; what only computed cells have is null on a text cell."""

    id: UUID
    sheet_id: UUID
    column_id: UUID
    row_index: int
    status: Literal["stale", "queued", "running", "completed", "failed"]
    cached: bool
    display_value: str | None
    value: Any
    error: str | None
    error_message: str | None
    input_hash: str | None
    request_metrics: RequestMetrics | None
    execution_id: str | None
    last_computed_version: int | None
    updated_at: datetime


class CellAnswer(Answer):
    success: Literal[True] = True
    cell: CellOut


class RowOut(Answer):
    """A row; `cells` by column id."""

    row_index: int
    cells: Mapping[UUID, CellOut]


class RowsAnswer(Answer):
    """A page of rows; `row_count` and `version` are of the version shown."""

    success: Literal[True] = True
    data: list[RowOut]
    columns: list[ColumnOut]
    row_count: int
    version: int
    pagination: Pagination
    filters: dict[str, Any]
    count: int


def spell_cell(cell: Cell, sheet_id: UUID) -> dict[str, Any]:
    """Spell a CellOut without building one: a page has up to hundreds of thousands."""
    return {
        "id": cell.id,
        "sheet_id": sheet_id,
        "column_id": cell.column_id,
        "row_index": cell.row_index,
        "status": "completed",
        "cached": False,
        "display_value": cell.display_value,
        "value": cell.value,
        "error": None,
        "error_message": None,
        "input_hash": None,
        "request_metrics": None,
        "execution_id": None,
        "last_computed_version": None,
        "updated_at": cell.updated_at,
    }


def spell_rows(
    found: RowPage, sheet_id: UUID, workspace_id: int, filters: Mapping[str, Any]
) -> dict[str, Any]:
    """Spell a RowsAnswer; a filter that is None was not applied."""
    column_ids = [str(column.id) for column in found.columns]
    return {
        "success": True,
        "data": [
            {
                "row_index": row.row_index,
                "cells": {
                    one: spell_cell(cell, sheet_id) for one, cell in zip(column_ids, row.cells, strict=True)
                },
            }
            for row in found.page.items
        ],
        "columns": [ColumnOut.of(column, sheet_id, workspace_id).model_dump() for column in found.columns],
        "row_count": found.row_count,
        "version": found.version_number,
        "pagination": Pagination.of(found.page).model_dump(),
        "filters": {name: value for name, value in filters.items() if value is not None},
        "count": len(found.page.items),
    }
