"""Reports: a pipeline is a set of columns over the datasets of a group, a run what came of one (E26)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from storage.domain.operations import ENDED, Operation


@dataclass(frozen=True, slots=True)
class ReportColumn:
    """A column of a report; its configuration names columns by title."""

    title: str
    type: str
    config: Mapping[str, Any]
    is_output_column: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "type": self.type,
            "config": dict(self.config),
            "is_output_column": self.is_output_column,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """A pipeline, or with a parent a run of it over `dataset_id`, whose rows the sheet `sheet_no` keeps.

    Of a pipeline `dataset_id` is the one that a run would take now if none is named.
    """

    id: int
    workspace_id: int
    name: str
    folder_id: int | None
    user_id: int
    dataset_group_id: int | None
    parent_id: int | None
    dataset_id: int | None
    columns: tuple[ReportColumn, ...]
    sheet_no: int | None
    operation_no: int | None
    created_at: datetime
    updated_at: datetime

    @property
    def is_run(self) -> bool:
        return self.parent_id is not None


def status_of(operation: Operation | None) -> str | None:
    """Return how a run stands in the words of recalculations; None of a pipeline."""
    if operation is None:
        return None
    return "completed" if operation.status == "succeeded" else operation.status


def has_ended(operation: Operation | None) -> bool:
    return operation is not None and operation.status in ENDED
