"""Imports: started with their sheet and queued operation, and committed whole or not at all."""

from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from storage.audit import record_audit
from storage.domain.errors import Conflict, ImportInProgress, NotFound
from storage.domain.imports import ImportProgress, ImportTarget, NewSheet, Started
from storage.domain.keys import Principal
from storage.domain.operations import CANCELLED_MESSAGE, IMPORT_FILE, IMPORTS, QUEUED, Operation
from storage.domain.sheets import Sheet
from storage.engine.catalog import Connection
from storage.engine.rows.operations import find_operation, set_answer
from storage.engine.rows.sheets import find_row_count, find_sheet_by_no, update_sheet
from storage.operations import ClaimRefused, cancel_within, enqueue, find_repeat
from storage.sheets import add_sheet, require_sheet
from storage.store import Store
from storage.tables import require_table_no

NO_OPERATION = "No such operation"


def start_file_import(
    store: Store,
    who: Principal,
    *,
    table_id: UUID,
    target: NewSheet | UUID,
    operation_id: str | None,
    request_hash: str,
    spec: dict[str, Any],
) -> Started:
    """Queue the import of a file into a new sheet, or into the sheet of an id (E8).

    `request_hash` (hexadecimal) is of the validated fields and the decoded file; `spec` tells the run what
    to do and carries `file_name`. A repeat of `operation_id` answers as the first call did.

    Raises:
        NotFound: no such table or sheet.
        Invalid: the new sheet's index is negative.
        ImportInProgress: another operation writes the sheet.
        Conflict: the operation id was used for another request.
    """
    return start_import(
        store,
        who,
        kind=IMPORT_FILE,
        table_id=table_id,
        target=target,
        operation_id=operation_id,
        request_hash=request_hash,
        spec=spec,
    )


def find_started(
    store: Store,
    who: Principal,
    *,
    kind: str,
    table_id: UUID,
    target: NewSheet | UUID,
    operation_id: str | None,
    request_hash: str,
) -> Started | None:
    """Return the first answer to an import that is asked for again; None: it is new.

    Raises:
        Conflict: the operation id was used for another import.
    """
    with store.catalog.read() as connection:
        sameness = _sameness(kind, table_id, target, request_hash)
        repeat = find_repeat(connection, who.workspace_id, operation_id, sameness)
    return _first_answer(repeat) if repeat else None


def _sameness(kind: str, table_id: UUID, target: NewSheet | UUID, request_hash: str) -> str:
    return sha256(f"{kind}\n{table_id}\n{target}\n{request_hash}".encode()).hexdigest()


def start_import(
    store: Store,
    who: Principal,
    *,
    kind: str,
    table_id: UUID,
    target: NewSheet | UUID,
    operation_id: str | None,
    request_hash: str,
    spec: dict[str, Any],
) -> Started:
    """As `start_file_import`, for any kind of import."""
    sameness = _sameness(kind, table_id, target, request_hash)
    with store.catalog.transaction() as connection:
        repeat = find_repeat(connection, who.workspace_id, operation_id, sameness)
        if repeat:
            return _first_answer(repeat)
        table_no = require_table_no(connection, who, table_id)
        sheet = _sheet_to_write(connection, store, who, table_id, table_no, target)
        operation = enqueue(
            connection,
            store,
            who,
            operation_id=operation_id,
            kind=kind,
            lane="short",
            request_hash=sameness,
            spec=spec,
            table_no=table_no,
            sheet_no=sheet.no,
        )
        update_sheet(connection, sheet.no, {"writer_no": operation.no})
        set_answer(connection, operation.no, _sheet_to_json(sheet))
        if not isinstance(target, NewSheet):
            # a new sheet has left an entry of its own
            details = {"operation_id": operation.id, "kind": kind}
            record_audit(
                connection,
                store,
                who,
                action="start_import",
                kind="sheet",
                entity_id=sheet.id,
                details=details,
            )
    return Started(operation, sheet, repeated=False)


def _sheet_to_write(
    connection: Connection,
    store: Store,
    who: Principal,
    table_id: UUID,
    table_no: int,
    target: NewSheet | UUID,
) -> Sheet:
    if isinstance(target, NewSheet):
        return add_sheet(
            connection,
            store,
            who,
            table_id=table_id,
            table_no=table_no,
            title=target.title,
            index=target.index,
            blank=False,
        )
    sheet = require_sheet(connection, who, table_id, target)
    if sheet.writer_no is not None:
        raise ImportInProgress("An operation writes this sheet now; wait for it or cancel it")
    return sheet


def _first_answer(operation: Operation) -> Started:
    as_queued = replace(
        operation,
        status=QUEUED,
        progress=0,
        message="Queued",
        error_message=None,
        rows_added=0,
        updated_at=operation.created_at,
    )
    return Started(as_queued, _sheet_from_json(operation.answer or {}), repeated=True)


def _sheet_to_json(sheet: Sheet) -> dict[str, Any]:
    values = {name: getattr(sheet, name) for name in Sheet.__slots__}
    return {
        name: str(value) if isinstance(value, UUID | datetime) else value for name, value in values.items()
    }


def _sheet_from_json(value: dict[str, Any]) -> Sheet:
    ids = {name: UUID(value[name]) for name in ("id", "table_id")}
    times = {name: datetime.fromisoformat(value[name]) for name in ("created_at", "updated_at")}
    return Sheet(**{**value, **ids, **times})


def get_import_operation(
    store: Store, who: Principal, *, table_id: UUID, operation_id: str
) -> ImportProgress:
    """Return an import of a table as the client polls it (E12); also of a sheet that is deleted.

    Raises:
        NotFound: no such import in that table of the workspace.
    """
    with store.catalog.read() as connection:
        table_no = require_table_no(connection, who, table_id)
        operation = find_operation(connection, who.workspace_id, operation_id)
        if operation is None or operation.kind not in IMPORTS or operation.table_no != table_no:
            raise NotFound(NO_OPERATION)
        return ImportProgress(operation, find_row_count(connection, operation.sheet_no or 0))


def get_import_target(store: Store, operation: Operation) -> ImportTarget:
    """Return the sheet that a claimed import writes.

    Raises:
        ClaimRefused: it is deleted: there is nothing to do.
    """
    with store.catalog.read() as connection:
        sheet = find_sheet_by_no(connection, operation.sheet_no or 0)
    if sheet is None:
        raise ClaimRefused(f"the sheet of operation {operation.no} is deleted")
    return ImportTarget(sheet.id, sheet.title)


def cancel_operation(
    store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, operation_id: str
) -> Operation:
    """End an operation of a sheet: its run can publish nothing any more.

    An import ends failed, "cancelled"; a recalculation ends cancelled, and keeps what it has done.

    Raises:
        NotFound: no such operation of that sheet.
        Conflict: it has ended.
    """
    with store.catalog.transaction() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        found = find_operation(connection, who.workspace_id, operation_id)
        if found is None or found.sheet_no != sheet.no:
            raise NotFound(NO_OPERATION)
        if not cancel_within(connection, store, found, CANCELLED_MESSAGE):
            raise Conflict(f"The operation has ended: {found.status}")
        record_audit(connection, store, who, action="cancel", kind="operation", entity_id=found.id)
    return found
