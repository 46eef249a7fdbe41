"""Export of a sheet as a file, streamed."""

from typing import Annotated, Literal
from urllib.parse import quote
from uuid import UUID

from fastapi import Query
from starlette.responses import Response

from api.deps import OpenStore, OpenStreams, Who
from api.paths import sheet_path
from api.routing import guarded_router, needs
from api.streams import Stream
from storage import sheet_export

router = guarded_router(prefix="/api/public/v2/tables/{table_id}/sheets/{sheet_id}", tags=["sheets"])
MEDIA = {
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
}
_CONTENT = {kind.split(";")[0]: {"schema": {"type": "string", "format": "binary"}} for kind in MEDIA.values()}


@router.get(
    "/export",
    summary="Export a sheet",
    response_class=Response,
    responses={200: {"description": "The file", "content": _CONTENT}},
)
@needs("read", path=sheet_path)
def export_sheet(
    store: OpenStore,
    streams: OpenStreams,
    who: Who,
    table_id: UUID,
    sheet_id: UUID,
    kind: Annotated[Literal["parquet", "csv", "jsonl"], Query(alias="format")] = "csv",
    version_number: Annotated[
        int | None, Query(ge=1, le=2_147_483_647, description="As this version had it.")
    ] = None,
) -> Response:
    """Stream a sheet as one state of it: what is written meanwhile is not in the file.

    While too many exports are under way, another is refused with 503 and `Retry-After`.
    """
    found = sheet_export.plan_sheet_export(
        store, who, table_id=table_id, sheet_id=sheet_id, version_number=version_number
    )
    name = quote(f"{found.title}.{kind}", safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return Stream(streams, found.pieces(kind), media_type=MEDIA[kind], headers=headers)
