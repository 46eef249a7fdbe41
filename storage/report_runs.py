"""Runs of reports (E26): a dataset's rows and a report's columns in a sheet out of sight, then computed.

So engine, statuses, cache, cells and upkeep are those of sheets.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from storage.audit import record_audit
from storage.dataset_sheets import add_hidden_sheet, require_group_sheet
from storage.datasets import require_dataset
from storage.domain.column_types import ASK_MODELS, runner_of
from storage.domain.column_types.binding import CodeReads
from storage.domain.columns import Column
from storage.domain.datasets import Dataset
from storage.domain.errors import Conflict, Malformed, invalid
from storage.domain.imports import Imported, imported_parts
from storage.domain.keys import Principal
from storage.domain.manifests import Manifest
from storage.domain.operations import COMPLETED, REPORT_REFRESH, Operation
from storage.domain.reports import Report
from storage.domain.sheets import Sheet
from storage.engine.catalog import Connection
from storage.engine.rows.datasets import find_latest
from storage.engine.rows.operations import update_open
from storage.engine.rows.reports import KIND, find_report_of_sheet, insert_report, update_report
from storage.engine.rows.segments import insert_segments
from storage.engine.rows.sheets import find_sheet_by_no, update_sheet
from storage.engine.rows.versions import find_version_state
from storage.engine.snapshots import Snapshot
from storage.laid_rows import add_text_columns, lay_rows, lay_shared
from storage.operations import ClaimRefused, enqueue, succeed
from storage.report_outcomes import record_report_ended
from storage.reports import check_columns, read_columns_before, require_report
from storage.shared_rows import shared_rows
from storage.store import Store

_NO_RUN = "A report that is itself a run cannot be run: run its pipeline"


def run_report(
    store: Store,
    who: Principal,
    report_id: int,
    *,
    name: str,
    dataset_id: int | None = None,
    refresh: bool = False,
) -> tuple[Report, Operation]:
    """Start a run of a pipeline over a dataset, the latest of its group if none is named (E26).

    `refresh` reads a dynamic dataset's requests anew; the dataset stays as it is.

    Raises:
        NotFound: no such report, or no such dataset.
        Malformed: the report is itself a run.
        Conflict: the dataset is a draft, or there is no version yet.
        Invalid: a dataset that is not dynamic is to be refreshed.
        InvalidConfig: a column reads one that the dataset does not have.
    """
    with store.catalog.read() as connection:
        report = require_report(connection, who, report_id)
        if report.is_run:
            raise Malformed(_NO_RUN)
        dataset = _dataset(connection, who, report, dataset_id)
        if refresh and dataset.filter_params is None:
            raise invalid("refresh_dataset", "applies only to dynamic datasets")
        columns, snapshot, next_row_no = rows_of_dataset(connection, store, dataset)
    reads = read_columns_before(store, who, report.columns)
    if refresh:
        return _start_refresh(store, who, report, dataset, reads, name)
    sheet_id = store.new_id()
    with (
        shared_rows(store, sheet_id, columns, snapshot, next_row_no) as shared,
        store.catalog.transaction() as connection,
    ):
        require_report(connection, who, report_id)
        check_columns(connection, who, shared.titles, report.columns, reads)
        sheet = add_hidden_sheet(connection, store, who, name, sheet_id)
        run_id = _add_run(connection, store, who, report, dataset, sheet, name)
        operation = lay_shared(connection, store, who, sheet, shared, report.columns, reads)
        if operation is None:
            raise RuntimeError("a report without columns was run")
        update_report(connection, run_id, {"operation_no": operation.no})
        if not shared.row_count:
            _complete_empty(connection, store, operation)
        return require_report(connection, who, run_id), operation


def _dataset(connection: Connection, who: Principal, report: Report, dataset_id: int | None) -> Dataset:
    if dataset_id is None:
        found = find_latest(connection, report.dataset_group_id or 0)
        if found is None:
            raise Conflict("The dataset group of the report has no version yet")
        return found
    found = require_dataset(connection, who, dataset_id)
    if found.is_draft:
        raise Conflict(f"The dataset {dataset_id} is a draft: save it before it is reported on")
    return found


def rows_of_dataset(
    connection: Connection, store: Store, dataset: Dataset
) -> tuple[tuple[Column, ...], Snapshot, int]:
    """Return columns, rows and the number after the last row's of a saved version."""
    sheet = require_group_sheet(connection, dataset.group)
    state = find_version_state(connection, sheet.no, dataset.sheet_version or 0)
    if state is None:
        raise RuntimeError(f"the rows of dataset {dataset.id} are gone")
    snapshot_no, structure = state
    return structure.columns, store.snapshots.get(connection, snapshot_no), sheet.next_row_no


def _asks_models(report: Report) -> bool:
    return not ASK_MODELS.isdisjoint(runner_of(one.type, one.config) for one in report.columns)


def _add_run(
    connection: Connection,
    store: Store,
    who: Principal,
    report: Report,
    dataset: Dataset,
    sheet: Sheet,
    name: str,
) -> int:
    now = store.now()
    values: dict[str, Any] = {
        "workspace_id": who.workspace_id,
        "name": name,
        "folder_id": report.folder_id,
        "user_id": who.user_id,
        "dataset_group_id": dataset.group.id,
        "parent_id": report.id,
        "dataset_id": dataset.id,
        "columns": [column.to_json() for column in report.columns],
        "sheet_no": sheet.no,
        "created_at": now,
        "updated_at": now,
    }
    run_id = insert_report(connection, values)
    details = {"name": name, "parent_id": report.id, "dataset_id": dataset.id}
    record_audit(connection, store, who, action="run", kind=KIND, entity_id=run_id, details=details)
    return run_id


def _complete_empty(connection: Connection, store: Store, operation: Operation) -> None:
    """End the run of a report over no rows: there is nothing to compute."""
    values = {"status": COMPLETED, "progress": 100, "message": "Nothing to do", "updated_at": store.now()}
    update_open(connection, operation.no, operation.attempt, values)
    record_report_ended(connection, store, operation, COMPLETED)


def _start_refresh(
    store: Store,
    who: Principal,
    report: Report,
    dataset: Dataset,
    reads: Sequence[CodeReads | None],
    name: str,
) -> tuple[Report, Operation]:
    with store.catalog.transaction() as connection:
        require_report(connection, who, report.id)
        check_columns(connection, who, dataset.column_names, report.columns, reads)
        sheet = add_hidden_sheet(connection, store, who, name)
        run_id = _add_run(connection, store, who, report, dataset, sheet, name)
        operation = enqueue(
            connection,
            store,
            who,
            operation_id=None,
            kind=REPORT_REFRESH,
            # the run goes on with the columns, which may take long
            lane="wait" if _asks_models(report) else "compute",
            request_hash=sha256(f"{REPORT_REFRESH}\n{run_id}".encode()).hexdigest(),
            spec={"history": dict(dataset.filter_params or {})},
            table_no=sheet.table_no,
            sheet_no=sheet.no,
        )
        update_sheet(connection, sheet.no, {"writer_no": operation.no})
        update_report(connection, run_id, {"operation_no": operation.no})
        return require_report(connection, who, run_id), operation


def commit_refresh(store: Store, who: Principal, operation: Operation, imported: Imported) -> Operation:
    """Publish the requests that a refresh has read with the report's columns; return their computation.

    Raises:
        ClaimRefused: the operation was cancelled, failed or taken over, or the report deleted.
        InvalidConfig: a column reads one that is not there.
    """
    now = store.now()
    with store.catalog.read() as connection:
        report = find_report_of_sheet(connection, operation.sheet_no or 0)
    if report is None:
        raise ClaimRefused(f"the report of operation {operation.no} is deleted")
    reads = read_columns_before(store, who, report.columns)
    with store.catalog.transaction() as connection:
        succeed(connection, store, operation, message=imported.message, rows_added=imported.row_count)
        sheet = find_sheet_by_no(connection, operation.sheet_no or 0)
        if sheet is None:
            raise ClaimRefused(f"the report of operation {operation.no} is deleted")
        texts = add_text_columns(connection, store, sheet, imported.titles, now)
        insert_segments(connection, sheet.no, imported.segments, now)
        parts = imported_parts(imported, [column.no for column in texts], sheet.next_row_no, now)
        next_row_no = sheet.next_row_no + imported.row_count
        columns = report.columns
        made = lay_rows(connection, store, who, sheet, Manifest(parts), None, next_row_no, columns, reads)
        if made is None:
            raise RuntimeError("a report without columns was run")
        update_report(connection, report.id, {"operation_no": made.no})
        return made
