"""The event of a report's run whose work has ended, in the transaction that ends it."""

from storage.domain.operations import RECALCULATE, REPORT_REFRESH, Operation
from storage.engine.catalog import Connection
from storage.engine.rows.reports import find_report_of_sheet
from storage.events import record_event
from storage.store import Store


def record_report_ended(connection: Connection, store: Store, operation: Operation, status: str) -> None:
    """Record how a run of a report ended; an operation of anything else makes no event."""
    if operation.kind not in {RECALCULATE, REPORT_REFRESH} or operation.sheet_no is None:
        return
    report = find_report_of_sheet(connection, operation.sheet_no)
    if report is None or report.operation_no != operation.no:
        return
    record_event(
        connection,
        store,
        workspace_id=operation.workspace_id,
        user_id=operation.user_id,
        event_type="report_finished",
        object_key=f"report:{report.id}",
        details={
            "report_id": report.id,
            "report_name": report.name,
            "parent_report_id": report.parent_id,
            "dataset_id": report.dataset_id,
            "status": status,
        },
    )
