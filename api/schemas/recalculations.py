"""Wire shapes of recalculations: asked for, estimated, polled (E19), cancelled."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import Field

from api.schemas.base import Answer, Body, WireInt, example
from storage.domain.recalculations import ANY_STATUS, Recalculation
from storage.recalculation_estimates import Estimate
from storage.recalculations import MOST_ROWS, Asked

Visited = Literal["stale", "queued", "running", "completed", "failed"]


class RecalculateBody(Body):
    """Which cells to compute: of all computed columns and all rows, unless told otherwise.

    `statuses` [] visits every cell; `force` computes also what would come out the same.
    """

    model_config = example({"operation": "recalculate", "statuses": ["stale", "failed"]})

    operation: Literal["recalculate"] = "recalculate"
    column_ids: Annotated[list[Annotated[UUID, Field(strict=False)]] | None, Field(max_length=5000)] = None
    row_indices: Annotated[list[WireInt] | None, Field(max_length=MOST_ROWS)] = None
    statuses: list[Visited] | None = None
    force: bool = False
    budget: Annotated[
        float | None, Field(ge=0, allow_inf_nan=False, description="Highest price, in dollars.")
    ] = None
    dry_run: bool = False

    def asked(self) -> Asked:
        statuses = ANY_STATUS if self.statuses is None else tuple(dict.fromkeys(self.statuses))
        return Asked(self.column_ids, self.row_indices, statuses, self.force, self.budget)


class RecalculationOut(Answer):
    """A recalculation; its cells are completed, failed or pending, and cached ones are completed."""

    operation_id: str
    operation: Literal["recalculate"]
    status: Literal["queued", "running", "completed", "failed", "cancelled"]
    status_counts: dict[str, int]
    cell_count: int
    completed_count: int
    failed_count: int
    pending_count: int
    cached_count: int
    price: float
    tokens: int
    message: str
    error_message: str | None
    status_url: str
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, found: Recalculation, table_id: UUID, sheet_id: UUID) -> Self:
        operation = found.operation
        values: dict[str, Any] = {
            "operation_id": operation.id,
            "operation": "recalculate",
            "status": operation.status,
            "status_counts": found.status_counts,
            "cell_count": found.cell_count,
            "completed_count": found.completed_count,
            "failed_count": found.failed_count,
            "pending_count": found.pending_count,
            "cached_count": found.cached_count,
            "price": sum(task.price for task in found.kept),
            "tokens": sum(task.tokens for task in found.kept),
            "message": operation.message,
            "error_message": operation.error_message,
            "status_url": f"/api/public/v2/tables/{table_id}/sheets/{sheet_id}/operations/{operation.id}",
            "created_at": operation.created_at,
            "updated_at": operation.updated_at,
        }
        return cls.model_validate(values)


class RecalculationAnswer(Answer):
    """Answer of E19."""

    success: Literal[True] = True
    operation: RecalculationOut


class EstimateOut(Answer):
    """What one column would take, by its own history; its cells are cached, unknown or to be computed.

    Cached: what they read has not changed, or the answer is known. Unknown: they read cells that are to be
    computed before.
    """

    column_id: UUID
    title: str
    cell_count: int
    cached_count: int
    unknown_count: int
    estimated_price: float
    estimated_tokens: int
    estimated_seconds: float

    @classmethod
    def of(cls, one: Estimate) -> Self:
        return cls(
            column_id=one.column.id,
            title=one.column.title,
            cell_count=one.cell_count,
            cached_count=one.cached_count,
            unknown_count=one.unknown_count,
            estimated_price=one.price,
            estimated_tokens=one.tokens,
            estimated_seconds=one.seconds,
        )


class DryRunAnswer(Answer):
    """What a recalculation would do; nothing was started."""

    success: Literal[True] = True
    dry_run: Literal[True] = True
    cell_count: int
    cached_count: int
    unknown_count: int
    estimated_price: float
    estimated_tokens: int
    estimated_seconds: float
    columns: list[EstimateOut]

    @classmethod
    def of(cls, found: list[Estimate]) -> Self:
        return cls(
            cell_count=sum(one.cell_count for one in found),
            cached_count=sum(one.cached_count for one in found),
            unknown_count=sum(one.unknown_count for one in found),
            estimated_price=sum(one.price for one in found),
            estimated_tokens=sum(one.tokens for one in found),
            estimated_seconds=sum(one.seconds for one in found),
            columns=[EstimateOut.of(one) for one in found],
        )


class OperationCancelled(Answer):
    success: Literal[True] = True
    message: str
    operation_id: str
    cancelled_cell_count: int


class StatusCounts(Answer):
    """Cells of a sheet by status; text cells are completed."""

    success: Literal[True] = True
    total_cells: int
    status_counts: dict[str, int]
