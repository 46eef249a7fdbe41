"""What else the end of an import changes, in its transaction: its event, or a dataset group's draft."""

from typing import Any

from storage.dataset_outcomes import fail_draft, finish_draft
from storage.domain.operations import DATASETS, IMPORT_FILE, IMPORT_REQUEST_LOGS, Operation
from storage.domain.webhooks import EventType
from storage.engine.catalog import Connection
from storage.engine.rows.operations import find_operation_by_no, find_written
from storage.events import record_event
from storage.store import Store

_SUCCEEDED: dict[str, EventType] = {
    IMPORT_FILE: "table_sheet_created_from_file",
    IMPORT_REQUEST_LOGS: "table_sheet_created_from_request_history",
}
_FAILED: dict[str, EventType] = {
    IMPORT_FILE: "table_sheet_created_from_file_failed",
    IMPORT_REQUEST_LOGS: "table_sheet_created_from_request_history_failed",
}


def record_import_succeeded(
    connection: Connection,
    store: Store,
    operation: Operation,
    *,
    rows_added: int,
    row_count: int,
    version_number: int,
) -> None:
    """Record that an import's rows are in its sheet; `row_count` and `version_number` are the sheet's."""
    if operation.kind in DATASETS:
        finish_draft(connection, store, operation, sheet_version=version_number)
        return
    _record(connection, store, operation, _SUCCEEDED, {"rows_added": rows_added, "row_count": row_count})


def record_import_failed(connection: Connection, store: Store, operation_no: int, message: str) -> None:
    """Record that an import failed or was cancelled; an operation of another kind makes no event."""
    operation = find_operation_by_no(connection, operation_no)
    if operation is not None and operation.kind in DATASETS:
        fail_draft(connection, store, operation, message)
    if operation is not None and operation.kind in _FAILED:
        _record(connection, store, operation, _FAILED, {"error_message": message})


def _record(
    connection: Connection,
    store: Store,
    operation: Operation,
    event_types: dict[str, EventType],
    facts: dict[str, Any],
) -> None:
    written = find_written(connection, operation.no)
    if written is None:
        return
    table_id, sheet_id = written
    details: dict[str, Any] = {
        "operation_id": operation.id,
        "table_id": str(table_id),
        "sheet_id": str(sheet_id),
        **facts,
    }
    if operation.kind == IMPORT_FILE:
        details["file_name"] = operation.spec.get("file_name", "")
    record_event(
        connection,
        store,
        workspace_id=operation.workspace_id,
        user_id=operation.user_id,
        event_type=event_types[operation.kind],
        object_key=f"sheet:{sheet_id}",
        details=details,
    )
