"""Imports: of a file or of requests (E13) into a sheet that is there; polled (E12)."""

from uuid import UUID

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from api.deps import OpenRuns, OpenStore, Who
from api.openapi import errors, streamed_body
from api.paths import sheet_path, table_path
from api.routing import guarded_router, needs
from api.schemas.history_source import ImportRequestLogsBody
from api.schemas.imports import ImportOperationAnswer, ImportQueued
from api.schemas.new_sheets import ImportFileBody
from api.uploads import receive_file, request_hash
from storage import imports
from storage.domain.errors import Conflict, ImportInProgress, Malformed
from storage.history_imports import start_history_import
from storage.uploads import start_upload_import

router = guarded_router(prefix="/api/public/v2/tables/{table_id}/sheets", tags=["imports"])


@router.get("/operations/{operation_id}", summary="Poll an import")
@needs("read", path=table_path)
def get_import_operation(
    store: OpenStore, runs: OpenRuns, who: Who, table_id: UUID, operation_id: str
) -> ImportOperationAnswer:
    """Return how far an import is; a run that ended without a word has ended its import too."""
    found = imports.get_import_operation(store, who, table_id=table_id, operation_id=operation_id)
    if runs.refresh(found.operation) != found.operation:
        found = imports.get_import_operation(store, who, table_id=table_id, operation_id=operation_id)
    return ImportOperationAnswer.of(found)


@router.post(
    "/{sheet_id}/imports/file",
    status_code=202,
    summary="Import a file into a sheet",
    response_model=ImportQueued,
    responses=errors(Conflict, ImportInProgress),
    openapi_extra=streamed_body(ImportFileBody),
)
@needs("write:table", path=sheet_path, streams_body=True)
async def import_file(
    request: Request, store: OpenStore, runs: OpenRuns, who: Who, table_id: UUID, sheet_id: UUID
) -> ImportQueued:
    """Queue an import into a sheet that is there; one at a time writes a sheet."""
    body, upload = await receive_file(request, ImportFileBody, ("file_content_base64",))
    if upload is None:
        raise Malformed("file_content_base64 was not found where it should stand")
    started = await run_in_threadpool(
        start_upload_import,
        store,
        who,
        table_id=table_id,
        target=sheet_id,
        file_name=body.file_name,
        upload=upload,
        operation_id=body.operation_id,
        request_hash=request_hash(body, upload),
    )
    if not started.repeated:
        runs.launch_soon(started.operation, str(started.sheet.id))
    return ImportQueued.of(started)


@router.post(
    "/{sheet_id}/imports/request-logs",
    status_code=202,
    summary="Import logged requests into a sheet",
    responses=errors(Conflict, ImportInProgress),
)
@needs("write:table", path=sheet_path, deep_json=True)
def import_request_logs(
    store: OpenStore, runs: OpenRuns, who: Who, table_id: UUID, sheet_id: UUID, body: ImportRequestLogsBody
) -> ImportQueued:
    """Queue an import of logged requests into a sheet that is there; one at a time writes a sheet."""
    started = start_history_import(
        store,
        who,
        table_id=table_id,
        target=sheet_id,
        query=body.query(),
        operation_id=body.operation_id,
        request_hash=request_hash(body, None),
        loc=("body",),
    )
    if not started.repeated:
        runs.launch_soon(started.operation, str(started.sheet.id))
    return ImportQueued.of(started)
