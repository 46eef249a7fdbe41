"""Reports: pipelines made, read, listed, deleted; how far a run is, with its rows and its score."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from storage.audit import record_audit
from storage.column_binding import bind, read_before
from storage.dataset_groups import require_group
from storage.domain.column_types.binding import CodeReads
from storage.domain.columns import TEXT, Column
from storage.domain.errors import Conflict, InvalidConfig, NotFound
from storage.domain.keys import Principal
from storage.domain.numbered_pages import NumberedPage
from storage.domain.operations import Operation
from storage.domain.paging import PageRequest
from storage.domain.reports import Report, ReportColumn
from storage.domain.rows import RowPage
from storage.domain.sheets import Sheet
from storage.engine.catalog import Connection
from storage.engine.rows.columns import select_columns
from storage.engine.rows.datasets import find_latest
from storage.engine.rows.operations import find_operation_by_no, select_open
from storage.engine.rows.reports import (
    KIND,
    find_report,
    insert_report,
    mark_report_deleted,
    select_report_page,
    select_runs,
)
from storage.engine.rows.sheets import find_sheet_by_no
from storage.engine.rows.tables import mark_table_deleted
from storage.folders import check_folder
from storage.operations import cancel_within
from storage.recalculations import sheet_status_counts
from storage.rows import list_rows
from storage.sheet_scores import score_now
from storage.store import Store


@dataclass(frozen=True, slots=True)
class ReportRead:
    """A report; of a run also the work that fills it, how many cells have which status, and its rows."""

    report: Report
    operation: Operation | None = None
    status_counts: Mapping[str, int] | None = None
    row_count: int = 0


def create_report(
    store: Store,
    who: Principal,
    *,
    dataset_group_id: int,
    name: str,
    columns: Sequence[ReportColumn],
    folder_id: int | None = None,
) -> Report:
    """Make a pipeline: columns that read those of the group's datasets, and those before them.

    They are checked against the group's latest version, if it has one; a run is checked against its dataset.

    Raises:
        NotFound: no such group or folder.
        Conflict: a title is there twice.
        InvalidConfig: a configuration does not fit, or a column that it reads is missing.
    """
    reads = read_columns_before(store, who, columns)
    now = store.now()
    with store.catalog.transaction() as connection:
        group = require_group(connection, who, dataset_group_id)
        check_folder(connection, who, folder_id)
        latest = find_latest(connection, group.id)
        if latest is not None:
            check_columns(connection, who, latest.column_names, columns, reads)
        values = {
            "workspace_id": who.workspace_id,
            "name": name,
            "folder_id": folder_id,
            "user_id": who.user_id,
            "dataset_group_id": group.id,
            "parent_id": None,
            "columns": [column.to_json() for column in columns],
            "created_at": now,
            "updated_at": now,
        }
        report_id = insert_report(connection, values)
        record_audit(
            connection, store, who, action="create", kind=KIND, entity_id=report_id, details={"name": name}
        )
        return require_report(connection, who, report_id)


def read_columns_before(
    store: Store, who: Principal, columns: Sequence[ReportColumn]
) -> list[CodeReads | None]:
    """Find what the code of each column reads, before a transaction is opened.

    Raises:
        InvalidConfig: code does not parse.
    """
    return [read_before(store, who, column.type, column.config) for column in columns]


def check_columns(
    connection: Connection,
    who: Principal,
    titles: Sequence[str],
    columns: Sequence[ReportColumn],
    reads: Sequence[CodeReads | None],
) -> None:
    """Check that columns could be added to a dataset of these titles.

    Raises:
        Conflict: a title is there twice.
        InvalidConfig: a configuration does not fit, or a column that it reads is missing.
    """
    # ids that nothing has: binding only needs to tell them apart
    there = [_unsaved(at, title, TEXT) for at, title in enumerate(titles)]
    for column, read in zip(columns, reads, strict=True):
        if any(one.title == column.title for one in there):
            raise Conflict(f"There are two columns {column.title!r}")
        try:
            bind(
                connection,
                who,
                kind=column.type,
                config=column.config,
                dependencies=None,
                columns=there,
                code_reads=read,
            )
        except InvalidConfig as error:
            raise InvalidConfig(f"{column.title}: {error.message}") from error
        there.append(_unsaved(len(there), column.title, column.type))


def _unsaved(at: int, title: str, kind: str) -> Column:
    return Column(-1 - at, UUID(int=at + 1), title, kind, {}, at, is_output_column=False)


def require_report(connection: Connection, who: Principal, report_id: int) -> Report:
    """Return a report that is not deleted, within a transaction of the caller.

    Raises:
        NotFound: no such report in the workspace.
    """
    found = find_report(connection, who.workspace_id, report_id)
    if found is None:
        raise NotFound(f"No report has the id {report_id}")
    return found


def check_report(store: Store, who: Principal, report_id: int) -> None:
    """Raise NotFound unless the workspace has that report."""
    with store.catalog.read() as connection:
        require_report(connection, who, report_id)


def get_report(store: Store, who: Principal, report_id: int) -> ReportRead:
    """Return a report, and how far it is if it is a run.

    Raises:
        NotFound: no such report.
    """
    with store.catalog.read() as connection:
        report = require_report(connection, who, report_id)
        if report.sheet_no is None:
            return ReportRead(report)
        sheet = _sheet_of(connection, report)
        operation = find_operation_by_no(connection, report.operation_no or 0)
        computed = [one for one in select_columns(connection, sheet.no) if one.computed]
        texts = len(select_columns(connection, sheet.no)) - len(computed)
    total, counts = sheet_status_counts(store, who, table_id=sheet.table_id, sheet_id=sheet.id)
    del total
    # cells of the dataset are no work of the report
    kept = Counter(counts)
    kept["completed"] -= texts * sheet.row_count
    return ReportRead(report, operation, +kept, sheet.row_count)


def get_run_sheet_id(store: Store, report: Report) -> str:
    """Return the id of the sheet that keeps a run's rows: its partition."""
    with store.catalog.read() as connection:
        return str(_sheet_of(connection, report).id)


def list_report_rows(
    store: Store, who: Principal, report_id: int, *, request: PageRequest, held: ExitStack | None = None
) -> RowPage:
    """List the rows of a run, also while it computes: the dataset's columns, then the report's.

    `held` as for the rows of sheets.

    Raises:
        NotFound: no such report.
        Conflict: it is a pipeline, which has no rows.
        InvalidCursor: the cursor is of another list.
    """
    sheet = _run_sheet(store, who, report_id)
    return list_rows(store, who, table_id=sheet.table_id, sheet_id=sheet.id, request=request, held=held)


def score_report(store: Store, who: Principal, report_id: int) -> dict[str, Any]:
    """Return `score` and `columns` of what a run has computed by now.

    Raises:
        NotFound: no such report.
        Conflict: it is a pipeline.
    """
    sheet = _run_sheet(store, who, report_id)
    with store.catalog.read() as connection:
        columns = select_columns(connection, sheet.no)
        snapshot = store.snapshots.get(connection, sheet.head_no)
    return score_now(store, snapshot, columns)


def _run_sheet(store: Store, who: Principal, report_id: int) -> Sheet:
    with store.catalog.read() as connection:
        report = require_report(connection, who, report_id)
        if report.sheet_no is None:
            raise Conflict(f"The report {report_id} is a pipeline: its runs have rows and scores")
        return _sheet_of(connection, report)


def _sheet_of(connection: Connection, report: Report) -> Sheet:
    sheet = find_sheet_by_no(connection, report.sheet_no or 0)
    if sheet is None:
        raise RuntimeError(f"the sheet of report {report.id} is gone")
    return sheet


def list_reports(
    store: Store,
    who: Principal,
    *,
    page: int,
    per_page: int,
    name: str | None = None,
    parent_id: int | None = None,
    dataset_group_id: int | None = None,
) -> NumberedPage[Report]:
    """Return a page of pipelines and runs, the newest first."""
    with store.catalog.read() as connection:
        items, total = select_report_page(
            connection,
            who.workspace_id,
            name=name,
            parent_id=parent_id,
            dataset_group_id=dataset_group_id,
            offset=(page - 1) * per_page,
            limit=per_page,
        )
    return NumberedPage(items, page, per_page, total)


def cancel_report(store: Store, who: Principal, report_id: int) -> list[Operation]:
    """End a run, or the runs of a pipeline that are under way; what they have computed stays.

    Returns the operations that this ended.

    Raises:
        NotFound: no such report.
        Conflict: nothing of it is under way.
    """
    with store.catalog.transaction() as connection:
        report = require_report(connection, who, report_id)
        ended = _cancel(connection, store, (report, *select_runs(connection, report.id)), "cancelled")
        if not ended:
            raise Conflict("The report has ended" if report.is_run else "No run of the report is under way")
        details = {"name": report.name, "parent_id": report.parent_id}
        record_audit(connection, store, who, action="cancel", kind=KIND, entity_id=report.id, details=details)
    return ended


def _cancel(connection: Connection, store: Store, reports: Iterable[Report], message: str) -> list[Operation]:
    """End the open operations of reports; return them."""
    ended: list[Operation] = []
    for one in reports:
        sheet = find_sheet_by_no(connection, one.sheet_no or 0)
        if sheet is not None:
            ended += [
                operation
                for operation in select_open(connection, table_no=sheet.table_no)
                if cancel_within(connection, store, operation, message)
            ]
    return ended


def delete_report(store: Store, who: Principal, report_id: int) -> list[Operation]:
    """Delete a run, or a pipeline with its runs; return the operations that this ended.

    Raises:
        NotFound: no such report.
    """
    now = store.now()
    with store.catalog.transaction() as connection:
        report = require_report(connection, who, report_id)
        all_of_it = (report, *select_runs(connection, report.id))
        for one in all_of_it:
            mark_report_deleted(connection, one.id, now)
        ended = _cancel(connection, store, all_of_it, "report deleted")
        for one in all_of_it:
            sheet = find_sheet_by_no(connection, one.sheet_no or 0)
            if sheet is not None:
                mark_table_deleted(connection, sheet.table_no, now)
        details = {"name": report.name, "parent_id": report.parent_id}
        record_audit(connection, store, who, action="delete", kind=KIND, entity_id=report.id, details=details)
    return ended
