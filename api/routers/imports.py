"""Imports as a client polls (E12) and cancels them."""

from uuid import UUID

from api.deps import OpenRuns, OpenStore, Who
from api.paths import sheet_path, table_path
from api.routing import guarded_router, needs
from api.schemas.imports import ImportCancelled, ImportOperationAnswer
from storage import imports

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


@router.delete("/{sheet_id}/operations/{operation_id}", summary="Cancel an operation")
@needs("write:table", path=sheet_path)
def cancel_operation(
    store: OpenStore, runs: OpenRuns, who: Who, table_id: UUID, sheet_id: UUID, operation_id: str
) -> ImportCancelled:
    """Cancel work on a sheet: it ends failed, "cancelled", and nothing of it is added."""
    cancelled = imports.cancel_operation(
        store, who, table_id=table_id, sheet_id=sheet_id, operation_id=operation_id
    )
    runs.terminate_soon(cancelled)
    return ImportCancelled(message="Cancelled", operation_id=cancelled.id, cancelled_cell_count=0)
