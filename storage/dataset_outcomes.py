"""How the end of work on a draft moves it, in the transaction that ends the work; with its events."""

from typing import Any

from storage.domain.datasets import Dataset
from storage.domain.drafts import Follows, Move, Trigger, move_draft
from storage.domain.imports import ImportRefused, file_name_of
from storage.domain.operations import DATASET_FILE, Operation
from storage.domain.webhooks import EventType
from storage.engine.catalog import Connection
from storage.engine.rows.audit import insert_audit_entry
from storage.engine.rows.columns import select_columns
from storage.engine.rows.datasets import (
    delete_dataset_row,
    find_dataset,
    find_draft,
    next_number,
    update_dataset,
)
from storage.engine.rows.sheets import find_sheet_by_no
from storage.events import record_event
from storage.store import Store

KIND = "dataset"


def finish_draft(
    connection: Connection, store: Store, operation: Operation, *, sheet_version: int | None
) -> Dataset:
    """Move the draft whose work is done and return it; a version is `sheet_version` of its group's sheet.

    Raises:
        ImportRefused: the draft is gone, or waits for other work: publish nothing.
    """
    draft = _find_waiting(connection, operation)
    move = None if draft is None else move_draft(draft.draft_state, Trigger.DONE)
    sheet = find_sheet_by_no(connection, operation.sheet_no or 0)
    if draft is None or not isinstance(move, Move) or sheet is None:
        raise ImportRefused("The draft was deleted meanwhile")
    columns = select_columns(connection, sheet.no)
    values: dict[str, Any] = {
        "operation_no": None,
        "column_names": [column.title for column in columns],
        "row_count": sheet.row_count,
        "updated_at": store.now(),
    }
    if move.follows is Follows.VERSION:
        number = next_number(connection, draft.group.id)
        values |= {"version_number": number, "state": None, "sheet_version": sheet_version}
        facts = {"version_number": number, "row_count": sheet.row_count, "column_count": len(columns)}
        _audit(connection, store, operation, draft, "create_version", facts)
        if operation.kind == DATASET_FILE:
            details = {"version_number": number, "row_count": sheet.row_count}
            _record_event(connection, store, operation, draft, "dataset_version_created_by_file", details)
    else:
        values["state"] = move.to
    update_dataset(connection, draft.id, values)
    moved = find_dataset(connection, draft.workspace_id, draft.id)
    if moved is None:
        raise RuntimeError("the draft just moved is gone")
    return moved


def fail_draft(connection: Connection, store: Store, operation: Operation, message: str) -> None:
    """Move the draft whose work failed or was cancelled; one that waits for other work stays as it is."""
    draft = _find_waiting(connection, operation)
    move = None if draft is None else move_draft(draft.draft_state, Trigger.FAILED)
    if draft is None or not isinstance(move, Move):
        return
    if move.follows is not Follows.REMOVED:
        values = {"state": move.to, "operation_no": None, "updated_at": store.now()}
        update_dataset(connection, draft.id, values)
        return
    delete_dataset_row(connection, draft.id)
    # of a filter or a copy that failed nothing else tells
    facts = {"operation_id": operation.id, "error_message": message}
    _audit(connection, store, operation, draft, "remove_draft", facts)
    if operation.kind == DATASET_FILE:
        details = {"error_message": message}
        _record_event(connection, store, operation, draft, "dataset_version_created_by_file_failed", details)


def _find_waiting(connection: Connection, operation: Operation) -> Dataset | None:
    """Return the draft that waits for an operation."""
    draft = find_draft(connection, int(operation.spec["dataset_group_id"]))
    return draft if draft is not None and draft.operation_no == operation.no else None


def _audit(
    connection: Connection,
    store: Store,
    operation: Operation,
    draft: Dataset,
    action: str,
    details: dict[str, Any],
) -> None:
    insert_audit_entry(
        connection,
        workspace_id=operation.workspace_id,
        user_id=operation.user_id,
        action=action,
        kind=KIND,
        entity_id=str(draft.id),
        details={"dataset_group_id": draft.group.id, **details},
        created_at=store.now(),
    )


def _record_event(
    connection: Connection,
    store: Store,
    operation: Operation,
    draft: Dataset,
    event_type: EventType,
    details: dict[str, Any],
) -> None:
    record_event(
        connection,
        store,
        workspace_id=operation.workspace_id,
        user_id=operation.user_id,
        event_type=event_type,
        object_key=f"dataset_group:{draft.group.id}",
        details={
            "dataset_id": draft.id,
            "dataset_group_id": draft.group.id,
            "dataset_group_name": draft.group.name,
            "file_name": file_name_of(operation),
            **details,
        },
    )
