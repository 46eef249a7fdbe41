"""New sheets (E8): blank, or from a file or the request history by an import."""

from uuid import UUID

from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool

from api.deps import OpenRuns, OpenStore, Who
from api.openapi import errors, streamed_body
from api.paths import table_path
from api.routing import guarded_router, needs
from api.schemas.history_source import RequestLogsSource
from api.schemas.imports import SheetCreated
from api.schemas.new_sheets import CreateSheetBody, FileSource
from api.uploads import receive_file, request_hash
from storage import sheets
from storage.domain.errors import Conflict, Malformed, invalid
from storage.domain.imports import NewSheet, Started
from storage.domain.keys import Principal
from storage.domain.uploads import Upload
from storage.history_imports import start_history_import
from storage.store import Store
from storage.uploads import discard_upload, start_upload_import

router = guarded_router(prefix="/api/public/v2/tables/{table_id}/sheets", tags=["sheets"])
_FILE = ("source", "file_content_base64")


@router.post(
    "",
    status_code=202,
    summary="Create a sheet",
    response_model=SheetCreated,
    responses={201: {"model": SheetCreated, "description": "A blank sheet"}, **errors(Conflict)},
    openapi_extra=streamed_body(CreateSheetBody),
)
@needs("write:table", path=table_path, streams_body=True)
async def create_sheet(
    request: Request, response: Response, store: OpenStore, runs: OpenRuns, who: Who, table_id: UUID
) -> SheetCreated:
    """Create a sheet: blank, or with an operation queued that imports a source into it."""
    body, upload = await receive_file(request, CreateSheetBody, _FILE)
    if body.source is None:
        response.status_code = 201
        return await run_in_threadpool(_create_blank, store, who, table_id, body)
    started = await run_in_threadpool(_start, store, who, table_id, body, body.source, upload)
    if not started.repeated:
        runs.launch_soon(started.operation, str(started.sheet.id))
    return SheetCreated.of_import(started)


def _create_blank(store: Store, who: Principal, table_id: UUID, body: CreateSheetBody) -> SheetCreated:
    if body.operation_id is not None:
        raise invalid("operation_id", "names an import: a blank sheet has none")
    sheet = sheets.create_blank_sheet(store, who, table_id=table_id, title=body.title, index=body.index)
    return SheetCreated.of_blank(sheet)


def _start(
    store: Store,
    who: Principal,
    table_id: UUID,
    body: CreateSheetBody,
    source: FileSource | RequestLogsSource,
    upload: Upload | None,
) -> Started:
    if isinstance(source, FileSource):
        return _import_file(store, who, table_id, body, source, upload)
    if upload is not None:
        discard_upload(store, upload)
    return start_history_import(
        store,
        who,
        table_id=table_id,
        target=NewSheet(body.title or "Request Logs", body.index),
        query=source.query(),
        operation_id=body.operation_id,
        request_hash=request_hash(body, None),
    )


def _import_file(
    store: Store,
    who: Principal,
    table_id: UUID,
    body: CreateSheetBody,
    source: FileSource,
    upload: Upload | None,
) -> Started:
    if upload is None:
        raise Malformed("source.file_content_base64 was not found where it should stand")
    return start_upload_import(
        store,
        who,
        table_id=table_id,
        target=NewSheet(body.title or source.file_name, body.index),
        file_name=source.file_name,
        upload=upload,
        operation_id=body.operation_id,
        request_hash=request_hash(body, upload),
    )
