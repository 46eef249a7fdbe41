"""Datasets in the making: from a file, a filter, a draft (E22-E24). Deprecated for new workflows."""

from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool

from api.deps import OpenRuns, OpenStore, Who
from api.openapi import errors, streamed_body
from api.routing import guarded_router, needs
from api.schemas.base import check_workspace_id
from api.schemas.datasets import (
    AddRowsBody,
    CreateDraftBody,
    DatasetQueued,
    DraftAnswer,
    FromFileBody,
    FromFilterBody,
    GroupIdBody,
    RowsAddedAnswer,
)
from api.uploads import receive_file
from storage import draft_rows, drafts
from storage.dataset_filters import check_filter, find_links
from storage.domain.drafts import DraftExists, NoDraft
from storage.domain.errors import Conflict, Malformed, NotFound
from storage.domain.keys import Principal
from storage.domain.uploads import Upload
from storage.store import Store
from storage.uploads import discard_upload

router = guarded_router(prefix="/api/public/v2/dataset-versions", tags=["datasets"], deprecated=True)


@router.post(
    "/from-file",
    status_code=201,
    summary="Create a dataset version from a file",
    response_model=DatasetQueued,
    responses=errors(DraftExists, NotFound),
    openapi_extra=streamed_body(FromFileBody),
)
@needs("write:dataset", streams_body=True)
async def create_from_file(request: Request, store: OpenStore, runs: OpenRuns, who: Who) -> DatasetQueued:
    """Queue a file as the group's next version; until then it is a draft, which a failure removes."""
    body, upload = await receive_file(request, FromFileBody, ("file_content_base64",))
    if upload is None:
        raise Malformed("file_content_base64 was not found where it should stand")
    made = await run_in_threadpool(_start_file, store, who, body, upload)
    if made.operation:
        runs.launch_soon(made.operation)
    return DatasetQueued(message="Processing of the file queued", dataset_id=made.dataset_id)


def _start_file(store: Store, who: Principal, body: FromFileBody, upload: Upload) -> drafts.Drafted:
    try:
        check_workspace_id(who, body.workspace_id)
    except Malformed:
        discard_upload(store, upload)
        raise
    return drafts.start_file_draft(
        store, who, group_id=body.dataset_group_id, file_name=body.file_name, upload=upload
    )


@router.post(
    "/from-filter-params",
    status_code=201,
    summary="Create a dataset version from a filter of requests",
    responses=errors(DraftExists, NotFound),
)
@needs("write:dataset", deep_json=True)
def create_from_filter(store: OpenStore, runs: OpenRuns, who: Who, body: FromFilterBody) -> DatasetQueued:
    """Queue the requests that match as the group's next version, which a report can read anew."""
    check_workspace_id(who, body.workspace_id)
    params = body.filter_params()
    check_filter(store, who.workspace_id, params)
    links = find_links(store, who.workspace_id, params)
    made = drafts.start_filter_draft(
        store, who, group_id=body.dataset_group_id, filter_params=params, links=links
    )
    if made.operation:
        runs.launch_soon(made.operation)
    return DatasetQueued(message="Reading of the requests queued", dataset_id=made.dataset_id)


@router.post(
    "/create-draft",
    status_code=201,
    summary="Create a draft dataset version",
    responses={
        202: {"model": DraftAnswer, "description": "Rows are being copied"},
        **errors(DraftExists, NotFound),
    },
)
@needs("write:dataset")
def create_draft(
    response: Response, store: OpenStore, runs: OpenRuns, who: Who, body: CreateDraftBody
) -> DraftAnswer:
    """Create an empty draft, or with a source queue the copy of its rows; a group has one draft."""
    check_workspace_id(who, body.workspace_id)
    made = drafts.create_draft(
        store, who, group_id=body.dataset_group_id, source_dataset_id=body.source_dataset_id
    )
    if made.operation is None:
        return DraftAnswer(message="Empty draft created", draft_dataset_id=made.dataset_id)
    runs.launch_soon(made.operation)
    response.status_code = 202
    return DraftAnswer(message="Draft created; its rows are being copied", draft_dataset_id=made.dataset_id)


@router.post(
    "/save-draft",
    status_code=202,
    summary="Save the draft as the next version",
    responses=errors(NoDraft),
)
@needs("write:dataset")
def save_draft(store: OpenStore, runs: OpenRuns, who: Who, body: GroupIdBody) -> DraftAnswer:
    """Queue the save of a group's draft; asked for twice, or while rows come, it makes one version."""
    check_workspace_id(who, body.workspace_id)
    made = drafts.save_draft(store, who, group_id=body.dataset_group_id)
    if made.operation:
        runs.launch_soon(made.operation)
    return DraftAnswer(message="Save queued", draft_dataset_id=made.dataset_id)


@router.post(
    "/add-rows",
    status_code=201,
    summary="Add rows to the draft",
    responses=errors(NoDraft, Conflict),
)
@needs("write:dataset")
def add_rows(store: OpenStore, who: Who, body: AddRowsBody) -> RowsAddedAnswer:
    """Add up to 1,000 rows at the end of a group's draft, by title; a new title becomes a column."""
    check_workspace_id(who, body.workspace_id)
    draft = draft_rows.add_draft_rows(store, who, group_id=body.dataset_group_id, rows=body.rows)
    return RowsAddedAnswer(
        message=f"{len(body.rows)} rows added", draft_dataset_id=draft.id, row_count=draft.row_count
    )
