"""Wire shapes of cells."""

from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from pydantic import model_validator

from api.schemas.base import Answer, Body, example
from storage.domain.cells import Cell
from storage.domain.model_calls import Metrics

_NO_CALLS = Metrics().to_json()


class RequestMetrics(Answer):
    """What the model calls of a cell took that was computed; nothing where it asked no model."""

    request_count: int
    request_ids: list[int]
    latency_ms: float
    price: float
    input_tokens: int
    output_tokens: int
    trace_ids: list[str]


class CellOut(Answer):
    """A cell; what only computed cells have is null on a text cell, and before the first computation."""

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


class CellEditBody(Body):
    """The new value, or the text to be shown, which is a value too; one of the two."""

    model_config = example({"value": "Paris"})

    value: Any = None
    display_value: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("give either value or display_value")
        return self

    @property
    def chosen(self) -> Any:
        return self.value if "value" in self.model_fields_set else self.display_value


class CellEdited(CellAnswer):
    """`stale_count`: how many computed cells must be computed anew; `version` is the sheet's."""

    stale_count: int
    version: int


def spell_cell(cell: Cell, sheet_id: UUID | str, column_id: str | None = None) -> dict[str, Any]:
    """Spell a CellOut without building one: a page has up to hundreds of thousands.

    Ids that many cells share may be given as text, so that they are spelled once.
    """
    state = cell.state
    metrics = state.request_metrics
    if metrics is None and state.last_computed_version is not None:
        metrics = _NO_CALLS
    return {
        "id": cell.id,
        "sheet_id": sheet_id,
        "column_id": column_id or cell.column_id,
        "row_index": cell.row_index,
        "status": state.status,
        "cached": state.cached,
        "display_value": cell.display_value,
        "value": cell.value,
        "error": state.error,
        "error_message": state.error_message,
        "input_hash": state.input_hash,
        "request_metrics": metrics,
        "execution_id": state.execution_id,
        "last_computed_version": state.last_computed_version,
        "updated_at": cell.updated_at,
    }
