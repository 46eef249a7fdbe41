"""Operations: queued in the transaction of the change, claimed by one run, ended exactly once."""

from typing import Any

from storage.domain.errors import Conflict, NotFound
from storage.domain.keys import Principal
from storage.domain.operations import (
    CANCELLED,
    CANCELLED_MESSAGE,
    COMPLETED,
    FAILED,
    QUEUED,
    RECALCULATE,
    RUNNING,
    SUCCEEDED,
    Lane,
    Operation,
    RunEnd,
    plan_run_end,
)
from storage.engine.catalog import Connection
from storage.engine.rows.operations import (
    find_operation,
    find_operation_by_no,
    find_sheet_id,
    insert_operation,
    release_sheet,
    select_by_status,
    update_failed,
    update_open,
    update_owned,
    update_queued,
)
from storage.import_events import record_import_failed
from storage.report_outcomes import record_report_ended
from storage.store import Store


class ClaimRefused(Exception):
    """Another run has this operation, or it has ended: do nothing."""


def enqueue(
    connection: Connection,
    store: Store,
    who: Principal,
    *,
    operation_id: str | None,
    kind: str,
    lane: Lane,
    request_hash: str,
    spec: dict[str, Any],
    table_no: int | None = None,
    sheet_no: int | None = None,
) -> Operation:
    """Add a queued operation within the transaction of the change that asks for it.

    Raises:
        Conflict: the workspace has an operation of that id (see `find_repeat` for answering a repeat).
    """
    now = store.now()
    public_id = operation_id or str(store.new_id())
    if find_operation(connection, who.workspace_id, public_id):
        raise Conflict(f"The operation id {public_id} is in use")
    values: dict[str, Any] = {
        "id": public_id,
        "workspace_id": who.workspace_id,
        "user_id": who.user_id,
        "kind": kind,
        "lane": lane,
        "status": QUEUED,
        "table_no": table_no,
        "sheet_no": sheet_no,
        "request_hash": request_hash,
        "spec": spec,
        "attempt": 1,
        "run_id": None,
        "launched_at": None,
        "progress": 0,
        "message": "Queued",
        "error_message": None,
        "rows_added": 0,
        "answer": None,
        "created_at": now,
        "updated_at": now,
    }
    return insert_operation(connection, values)


def get_operation(store: Store, no: int) -> Operation:
    """Return an operation by number.

    Raises:
        NotFound: no such operation.
    """
    with store.catalog.read() as connection:
        found = find_operation_by_no(connection, no)
    if found is None:
        raise NotFound("No such operation")
    return found


def find_repeat(
    connection: Connection, workspace_id: int, public_id: str | None, request_hash: str
) -> Operation | None:
    """Return the operation that a repeated call means; None when the id is new or absent.

    Raises:
        Conflict: the id was used for another request.
    """
    found = None if public_id is None else find_operation(connection, workspace_id, public_id)
    if found and found.request_hash != request_hash:
        raise Conflict(f"The operation id {public_id} was used for another request")
    return found


def list_waiting(store: Store, limit: int = 100) -> list[Operation]:
    """List queued operations, oldest first: each needs a live run."""
    with store.catalog.read() as connection:
        return select_by_status(connection, [QUEUED], limit)


def list_unended(store: Store, limit: int = 200) -> list[Operation]:
    """List queued and running operations, oldest first."""
    with store.catalog.read() as connection:
        return select_by_status(connection, [QUEUED, RUNNING], limit)


def record_launch(store: Store, no: int, attempt: int, run_id: str) -> None:
    """Note which run was launched for an attempt; the claim decides which one works."""
    with store.catalog.transaction() as connection:
        update_queued(connection, no, attempt, {"run_id": run_id, "launched_at": store.now()})


def claim(store: Store, no: int, attempt: int, run_id: str) -> Operation:
    """Take a queued operation for a run: exactly one run of an attempt gets it.

    Raises:
        ClaimRefused: it is not queued, or a later attempt is.
    """
    values = {"status": RUNNING, "run_id": run_id, "message": "Running", "updated_at": store.now()}
    with store.catalog.transaction() as connection:
        claimed = update_queued(connection, no, attempt, values)
        found = find_operation_by_no(connection, no)
    if not claimed or found is None:
        state = "gone" if found is None else f"{found.status}, attempt {found.attempt}"
        raise ClaimRefused(f"operation {no} attempt {attempt} is {state}")
    return found


def set_progress(store: Store, operation: Operation, progress: int, message: str) -> bool:
    """Tell the client how far a claimed operation is (0-100); False when the run no longer owns it."""
    values = {"progress": progress, "message": message, "updated_at": store.now()}
    with store.catalog.transaction() as connection:
        return update_owned(connection, operation, values)


def succeed(
    connection: Connection, store: Store, operation: Operation, *, message: str, rows_added: int
) -> None:
    """End an operation well, in the transaction that publishes its result.

    Raises:
        ClaimRefused: the run no longer owns it (cancelled, failed or taken over): publish nothing.
    """
    now = store.now()
    values = {
        "status": SUCCEEDED,
        "progress": 100,
        "message": message,
        "rows_added": rows_added,
        "updated_at": now,
    }
    owned = update_owned(connection, operation, values)
    if not owned:
        raise ClaimRefused(f"operation {operation.no} is no longer of run {operation.run_id}")
    release_sheet(connection, operation.no)


def fail(store: Store, no: int, attempt: int, message: str) -> bool:
    """End an operation that has not ended as failed, with a sentence for the client; False if it had."""
    with store.catalog.transaction() as connection:
        return fail_within(connection, store, no, attempt, message)


def complete(connection: Connection, store: Store, operation: Operation, message: str) -> None:
    """End a recalculation that tried every cell.

    Raises:
        ClaimRefused: the run no longer owns it.
    """
    values = {"status": COMPLETED, "progress": 100, "message": message, "updated_at": store.now()}
    if not update_owned(connection, operation, values):
        raise ClaimRefused(f"operation {operation.no} is no longer of run {operation.run_id}")
    release_sheet(connection, operation.no)
    record_report_ended(connection, store, operation, COMPLETED)


def cancel_within(connection: Connection, store: Store, operation: Operation, message: str) -> bool:
    """End an operation that has not ended as cancelled; an import, which knows no such end, as failed."""
    if operation.kind != RECALCULATE:
        return fail_within(connection, store, operation.no, operation.attempt, message)
    values = {"status": CANCELLED, "message": message, "updated_at": store.now()}
    cancelled = update_open(connection, operation.no, operation.attempt, values)
    if cancelled:
        release_sheet(connection, operation.no)
        record_report_ended(connection, store, operation, CANCELLED)
    return cancelled


def fail_within(connection: Connection, store: Store, no: int, attempt: int, message: str) -> bool:
    """As `fail`, within a transaction of the caller."""
    now = store.now()
    values = {
        "status": FAILED,
        "error_message": message,
        "message": message,
        "rows_added": 0,
        "updated_at": now,
    }
    failed = update_open(connection, no, attempt, values)
    if failed:
        release_sheet(connection, no)
        record_import_failed(connection, store, no, message)
        ended = find_operation_by_no(connection, no)
        if ended is not None:
            record_report_ended(connection, store, ended, FAILED)
    return failed


def raise_attempt(store: Store, no: int, attempt: int) -> bool:
    """Queue an operation again under the next attempt: its run died, or its host was down."""
    with store.catalog.transaction() as connection:
        return update_open(connection, no, attempt, _next_attempt(store, attempt))


def _next_attempt(store: Store, attempt: int) -> dict[str, Any]:
    return {
        "attempt": attempt + 1,
        "status": QUEUED,
        "run_id": None,
        "launched_at": None,
        "progress": 0,
        "message": "Queued again",
        "error_message": None,
        "updated_at": store.now(),
    }


def settle_ended_run(store: Store, no: int, attempt: int, run_id: str, *, cancelled: bool) -> RunEnd:
    """Tell an operation that a run, launched for `attempt`, ended in Dagster without success."""
    with store.catalog.transaction() as connection:
        found = find_operation_by_no(connection, no)
        if found is None:
            return RunEnd.NOTHING
        end = plan_run_end(found, attempt, run_id, cancelled=cancelled)
        if end is RunEnd.AGAIN:
            update_open(connection, no, found.attempt, _next_attempt(store, found.attempt))
        elif end is RunEnd.FAIL:
            message = (
                CANCELLED_MESSAGE if cancelled else f"The run that did this work ended early (run {run_id})."
            )
            if cancelled:
                cancel_within(connection, store, found, message)
            else:
                fail_within(connection, store, no, found.attempt, message)
        return end


def reopen(store: Store, no: int, failed_run_id: str) -> Operation:
    """Queue a failed operation again because its failed run is executed again, while its sheet is unchanged.

    Raises:
        ClaimRefused: it did not fail in that run, or its sheet was changed, deleted or taken since.
    """
    with store.catalog.transaction() as connection:
        found = find_operation_by_no(connection, no)
        values = {} if found is None else _next_attempt(store, found.attempt)
        if found is None or not update_failed(connection, found, failed_run_id, values):
            raise ClaimRefused(f"operation {no} cannot be opened again: it or its sheet has moved on")
    return get_operation(store, no)


def get_sheet_id(store: Store, operation: Operation) -> str:
    """Return the public id of the sheet that an operation writes.

    Raises:
        NotFound: it writes none.
    """
    with store.catalog.read() as connection:
        found = find_sheet_id(connection, operation.no)
    if found is None:
        raise NotFound("The operation writes no sheet")
    return str(found)
