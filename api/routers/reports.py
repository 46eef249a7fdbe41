"""Reports: made, run (E26), read with rows and scores, listed, deleted. Deprecated for new workflows."""

from contextlib import ExitStack
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from api.deps import OpenRuns, OpenStore, Who
from api.openapi import errors
from api.paths import report_path
from api.rendering import PlainJson
from api.routing import guarded_router, needs
from api.schemas.base import check_workspace_id
from api.schemas.numbered import NumberedPageOut, PageNumber, PerPage, numbered_page_out
from api.schemas.pages import Cursor, LongLimit, Order
from api.schemas.reports import (
    ReportAnswer,
    ReportBody,
    ReportListed,
    ReportOut,
    ReportRows,
    ReportScore,
    RunBody,
    RunStarted,
    spell_report_rows,
)
from api.schemas.tables import Done
from storage import report_runs, reports
from storage.domain.errors import Conflict, InvalidConfig, InvalidCursor, Malformed, NotFound
from storage.domain.paging import PageRequest
from storage.domain.prompts import MAX_INTEGER

router = guarded_router(prefix="/reports", tags=["reports"], deprecated=True)

Id = Annotated[int | None, Query(ge=1, le=MAX_INTEGER)]


@router.post(
    "", status_code=201, summary="Create a report", responses=errors(NotFound, Conflict, InvalidConfig)
)
@needs("write:report")
def create_report(store: OpenStore, who: Who, body: ReportBody) -> ReportAnswer:
    """Create a pipeline: columns that each run computes over a dataset version of the group."""
    check_workspace_id(who, body.workspace_id)
    report = reports.create_report(
        store,
        who,
        dataset_group_id=body.dataset_group_id,
        name=body.name,
        columns=[column.column() for column in body.columns],
        folder_id=body.folder_id,
    )
    return ReportAnswer(report=ReportOut.of(reports.ReportRead(report)))


@router.get("", summary="List reports", responses=errors(Malformed))
@needs("read")
def list_reports(
    store: OpenStore,
    who: Who,
    page: PageNumber = 1,
    per_page: PerPage = 30,
    name: Annotated[str | None, Query(description="Any part of the name, in any case.")] = None,
    parent_id: Annotated[int | None, Query(ge=1, le=MAX_INTEGER, description="Only its runs.")] = None,
    dataset_group_id: Id = None,
) -> NumberedPageOut[ReportListed]:
    """List pipelines and their runs, the newest first."""
    found = reports.list_reports(
        store,
        who,
        page=page,
        per_page=per_page,
        name=name,
        parent_id=parent_id,
        dataset_group_id=dataset_group_id,
    )
    return numbered_page_out(found, ReportListed.of)


@router.get("/{report_id}", summary="Read a report")
@needs("read", path=report_path)
def get_report(store: OpenStore, runs: OpenRuns, who: Who, report_id: int) -> ReportAnswer:
    """Read a pipeline, or a run with its status and how many cells have which."""
    found = reports.get_report(store, who, report_id)
    if found.operation is not None and runs.refresh(found.operation) != found.operation:
        found = reports.get_report(store, who, report_id)
    return ReportAnswer(report=ReportOut.of(found))


@router.post(
    "/{report_id}/run",
    status_code=201,
    summary="Run a report",
    responses=errors(Malformed, Conflict, InvalidConfig),
)
@needs("write:report", path=report_path)
def run_report(store: OpenStore, runs: OpenRuns, who: Who, report_id: int, body: RunBody) -> RunStarted:
    """Compute the report's columns over a dataset; the answer names the report that the run fills."""
    check_workspace_id(who, body.workspace_id)
    report, operation = report_runs.run_report(
        store,
        who,
        report_id,
        name=body.name,
        dataset_id=body.dataset_id,
        refresh=body.refresh_dataset or False,
    )
    runs.launch_soon(operation, reports.get_run_sheet_id(store, report))
    return RunStarted(report_id=report.id)


@router.post("/{report_id}/cancel", summary="Cancel a report", responses=errors(Conflict))
@needs("write:report", path=report_path)
def cancel_report(store: OpenStore, runs: OpenRuns, who: Who, report_id: int) -> Done:
    """Cancel a run, or the runs of a pipeline that are under way; what they have computed stays."""
    for operation in reports.cancel_report(store, who, report_id):
        runs.terminate_soon(operation)
    return Done(message="Report cancelled")


@router.get(
    "/{report_id}/rows",
    summary="Read the rows of a report",
    response_model=ReportRows,
    responses=errors(InvalidCursor, Conflict),
)
@needs("read", path=report_path)
def list_rows(
    store: OpenStore,
    who: Who,
    report_id: int,
    cursor: Cursor = None,
    limit: LongLimit = 100,
    order: Order = "asc",
) -> Response:
    """Read the rows of a run, also while it computes; a pipeline has none."""
    request = PageRequest(limit, order, cursor)
    with ExitStack() as held:
        found = reports.list_report_rows(store, who, report_id, request=request, held=held)
        return PlainJson(spell_report_rows(report_id, found))


@router.get("/{report_id}/score", summary="Read the score of a report", responses=errors(Conflict))
@needs("read", path=report_path)
def get_score(store: OpenStore, who: Who, report_id: int) -> ReportScore:
    """Score what a run has computed by now: output columns, else scores and comparisons, else the last."""
    found = reports.score_report(store, who, report_id)
    return ReportScore(report_id=report_id, score=found["score"], columns=found["columns"])


@router.delete("/{report_id}", summary="Delete a report")
@needs("write:report", path=report_path)
def delete_report(store: OpenStore, runs: OpenRuns, who: Who, report_id: int) -> Done:
    """Delete a run, or a pipeline with its runs; what computes is cancelled."""
    for operation in reports.delete_report(store, who, report_id):
        runs.terminate_soon(operation)
    return Done(message="Report deleted")
