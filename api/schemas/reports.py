"""Wire shapes of reports and of their runs (E26)."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from api.schemas.base import Answer, Body, WireInt, example
from api.schemas.columns import ColumnCreate, Title
from api.schemas.datasets import Id, InWorkspace
from api.schemas.pages import Pagination
from storage.domain.reports import Report, ReportColumn, status_of
from storage.domain.rows import RowPage
from storage.reports import ReportRead

_COLUMN = {"title": "Correct", "type": "comparison", "config": {"sources": ["answer"], "target": "42"}}


class ReportColumnIn(ColumnCreate):
    """A column of a report; it reads those of the dataset and of the report before it, by title."""

    model_config = example(_COLUMN)

    def column(self) -> ReportColumn:
        return ReportColumn(self.title, self.type, self.config or {}, self.is_output_column or False)


class ReportBody(Body):
    """A pipeline to make: columns to compute over datasets of a group."""

    model_config = example({"dataset_group_id": 7, "name": "Answers", "columns": [_COLUMN]})

    dataset_group_id: Id
    name: Title
    columns: Annotated[list[ReportColumnIn], Field(min_length=1, max_length=100)]
    folder_id: WireInt | None = None
    workspace_id: WireInt | None = None


class RunBody(InWorkspace):
    """Body of E26."""

    model_config = example({"name": "Answers of May", "dataset_id": 31})

    name: Title
    dataset_id: Annotated[Id | None, Field(description="Default: the latest version of the group.")] = None
    refresh_dataset: Annotated[
        bool | None, Field(description="Read the requests of a dynamic dataset anew.")
    ] = None


class RunStarted(Answer):
    """Answer of E26: the report that the run fills."""

    success: Literal[True] = True
    report_id: int


class ReportColumnOut(Answer):
    title: str
    type: str
    config: dict[str, Any]
    is_output_column: bool


class ReportOut(Answer):
    """A pipeline, or with `parent_id` a run of it; `status`, counts and rows are a run's.

    `dataset_id` is the dataset of a run; of a pipeline the one that its next run takes if none is named.
    """

    id: int
    workspace_id: int
    name: str
    folder_id: int | None
    user_id: int
    dataset_group_id: int | None
    dataset_id: int | None
    parent_id: int | None
    columns: list[ReportColumnOut]
    status: str | None
    progress: int | None
    error_message: str | None
    status_counts: dict[str, int] | None
    row_count: int | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, read: ReportRead) -> Self:
        report, operation = read.report, read.operation
        return cls(
            **_facts(report),
            status=status_of(operation),
            progress=operation and operation.progress,
            error_message=operation and operation.error_message,
            status_counts=None if read.status_counts is None else dict(read.status_counts),
            row_count=read.row_count if report.is_run else None,
        )


class ReportListed(Answer):
    """A report in a list; `GET /reports/{id}` says how far a run is."""

    id: int
    workspace_id: int
    name: str
    folder_id: int | None
    user_id: int
    dataset_group_id: int | None
    dataset_id: int | None
    parent_id: int | None
    columns: list[ReportColumnOut]
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, report: Report) -> Self:
        return cls(**_facts(report))


def _facts(report: Report) -> dict[str, Any]:
    names = (
        "id", "workspace_id", "name", "folder_id", "user_id", "dataset_group_id", "dataset_id", "parent_id",
        "created_at", "updated_at",
    )  # fmt: skip
    columns = [ReportColumnOut(**column.to_json()) for column in report.columns]
    return {**{name: getattr(report, name) for name in names}, "columns": columns}


class ReportAnswer(Answer):
    success: Literal[True] = True
    report: ReportOut


class ReportCell(Answer):
    """What stands in a cell, and how it stands."""

    value: Any
    status: str
    cached: bool
    error: str | None
    error_message: str | None


class ReportRowOut(Answer):
    """A row; `cells` by title."""

    row_index: int
    cells: dict[str, ReportCell]


class ReportRows(Answer):
    """A page of rows: the dataset's columns, then the report's."""

    success: Literal[True] = True
    report_id: int
    data: list[ReportRowOut]
    column_names: list[str]
    row_count: int
    pagination: Pagination
    count: int


class ReportScore(Answer):
    """The score of what is computed by now: null where nothing is to be scored."""

    success: Literal[True] = True
    report_id: int
    score: float | None
    columns: list[dict[str, Any]]


def spell_report_rows(report_id: int, found: RowPage) -> dict[str, Any]:
    """Spell a ReportRows."""
    titles = [column.title for column in found.columns]
    data = [
        {
            "row_index": row.row_index,
            "cells": {
                title: {
                    "value": cell.value,
                    "status": cell.state.status,
                    "cached": cell.state.cached,
                    "error": cell.state.error,
                    "error_message": cell.state.error_message,
                }
                for title, cell in zip(titles, row.cells, strict=True)
            },
        }
        for row in found.page.items
    ]
    return {
        "success": True,
        "report_id": report_id,
        "data": data,
        "column_names": titles,
        "row_count": found.row_count,
        "pagination": Pagination.of(found.page).model_dump(),
        "count": len(data),
    }
