"""Wire shapes of rows: pages of them, rows to add and to delete."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from api.schemas.base import Answer, Body, WireInt, example
from api.schemas.cells import CellOut, spell_cell
from api.schemas.pages import Pagination
from api.schemas.sheets import ColumnOut
from storage.domain.new_rows import RowsAdded
from storage.domain.rows import RowPage

ColumnId = Annotated[UUID, Field(strict=False)]


class RowsAdd(Body):
    """Rows to add at the end; `values` fill the first of them, by column id."""

    model_config = example(
        {"count": 2, "values": [{"6f1d1c52-9c7e-4c9a-8f3e-0b6f4f6f3a10": "Paris"}]},
    )

    count: WireInt | None = None
    values: list[dict[ColumnId, Any]] | None = None


class RowsAddAnswer(Answer):
    success: Literal[True] = True
    message: str
    row_indices: list[int]
    row_count: int
    version: int

    @classmethod
    def of(cls, added: RowsAdded) -> "RowsAddAnswer":
        return cls(
            message=f"{added.count} rows added",
            row_indices=list(range(added.first_index, added.first_index + added.count)),
            row_count=added.row_count,
            version=added.version_number,
        )


class RowsDelete(Body):
    """Rows to delete, by their places now."""

    model_config = example({"row_indices": [0, 7]})

    row_indices: Annotated[list[WireInt], Field(min_length=1, max_length=1000)]


class RowsDeleted(Answer):
    success: Literal[True] = True
    message: str
    row_count: int


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


def spell_rows(
    found: RowPage, sheet_id: UUID, workspace_id: int, filters: Mapping[str, Any]
) -> dict[str, Any]:
    """Spell a RowsAnswer; a filter that is None was not applied."""
    sheet, column_ids = str(sheet_id), [str(column.id) for column in found.columns]
    return {
        "success": True,
        "data": [
            {
                "row_index": row.row_index,
                "cells": {
                    one: spell_cell(cell, sheet, one) for one, cell in zip(column_ids, row.cells, strict=True)
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
