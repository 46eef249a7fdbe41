"""Recalculations of a sheet: started, estimated, polled (E19), cancelled; its cells counted by status."""

from uuid import UUID

from fastapi import Response

from api.deps import OpenRuns, OpenStore, Who
from api.openapi import errors
from api.paths import form_only, sheet_path
from api.routing import guarded_router, needs
from api.schemas.pages import Cursor, Limit, Order, PageOut, page_out
from api.schemas.recalculations import (
    DryRunAnswer,
    OperationCancelled,
    RecalculateBody,
    RecalculationAnswer,
    RecalculationOut,
    StatusCounts,
)
from storage import imports, recalculations
from storage.domain.errors import Conflict, WrongColumnType
from storage.domain.paging import PageRequest

router = guarded_router(prefix="/api/public/v2/tables/{table_id}/sheets/{sheet_id}", tags=["recalculations"])


@router.post(
    "/operations",
    status_code=202,
    summary="Recalculate",
    response_model=RecalculationAnswer | DryRunAnswer,
    responses={
        200: {
            "model": RecalculationAnswer | DryRunAnswer,
            "description": "Nothing to do, or what would be done",
        },
        **errors(WrongColumnType),
    },
)
@needs("write:table", path=sheet_path)
def recalculate(
    store: OpenStore,
    runs: OpenRuns,
    who: Who,
    response: Response,
    table_id: UUID,
    sheet_id: UUID,
    body: RecalculateBody,
) -> RecalculationAnswer | DryRunAnswer:
    """Compute cells of a sheet, in the order in which columns read each other."""
    place = {"table_id": table_id, "sheet_id": sheet_id}
    if body.dry_run:
        response.status_code = 200
        # the library of frames is slow to load, and most never ask
        from pipelines.estimates import estimate  # noqa: PLC0415

        return DryRunAnswer.of(estimate(store, who, **place, asked=body.asked()))
    found = recalculations.start_recalculation(store, who, **place, asked=body.asked())
    if found.operation.ended:
        response.status_code = 200
    else:
        runs.launch_soon(found.operation, str(sheet_id))
    return RecalculationAnswer(operation=RecalculationOut.of(found, table_id, sheet_id))


@router.get("/operations", summary="List recalculations")
@needs("read", path=sheet_path)
def list_operations(
    store: OpenStore,
    who: Who,
    table_id: UUID,
    sheet_id: UUID,
    cursor: Cursor = None,
    limit: Limit = 20,
    order: Order = "desc",
) -> PageOut[RecalculationOut]:
    """List the recalculations of a sheet, newest first."""
    page = recalculations.list_recalculations(
        store, who, table_id=table_id, sheet_id=sheet_id, request=PageRequest(limit, order, cursor)
    )
    return page_out(page, lambda one: RecalculationOut.of(one, table_id, sheet_id))


@router.get("/operations/{operation_id}", summary="Poll a recalculation")
@needs("read", path=form_only("table_id", "sheet_id"))
def get_operation(
    store: OpenStore, runs: OpenRuns, who: Who, table_id: UUID, sheet_id: UUID, operation_id: str
) -> RecalculationAnswer:
    """Return how far a recalculation is; a run that ended without a word is told to it."""
    place = {"table_id": table_id, "sheet_id": sheet_id}
    found = recalculations.get_recalculation(store, who, **place, operation_id=operation_id)
    if runs.refresh(found.operation) != found.operation:
        found = recalculations.get_recalculation(store, who, **place, operation_id=operation_id)
    return RecalculationAnswer(operation=RecalculationOut.of(found, table_id, sheet_id))


@router.delete("/operations/{operation_id}", summary="Cancel an operation", responses=errors(Conflict))
@needs("write:table", path=sheet_path)
def cancel_operation(
    store: OpenStore, runs: OpenRuns, who: Who, table_id: UUID, sheet_id: UUID, operation_id: str
) -> OperationCancelled:
    """Cancel work on a sheet.

    An import ends failed and adds nothing; a recalculation keeps what it has done, and its other cells are as
    they were before.
    """
    place = {"table_id": table_id, "sheet_id": sheet_id}
    cancelled = imports.cancel_operation(store, who, **place, operation_id=operation_id)
    runs.terminate_soon(cancelled)
    left = recalculations.count_left(store, who, **place, operation_id=operation_id)
    return OperationCancelled(message="Cancelled", operation_id=cancelled.id, cancelled_cell_count=left)


@router.get("/status-counts", summary="Count cells by status")
@needs("read", path=sheet_path)
def get_status_counts(store: OpenStore, who: Who, table_id: UUID, sheet_id: UUID) -> StatusCounts:
    """Count the cells of a sheet by status."""
    total, counts = recalculations.sheet_status_counts(store, who, table_id=table_id, sheet_id=sheet_id)
    return StatusCounts(total_cells=total, status_counts=counts)
