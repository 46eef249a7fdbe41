"""From datasets and reports to tables: a version becomes a sheet, a report's columns become the sheet's."""

from dataclasses import dataclass

from storage.audit import record_audit
from storage.datasets import require_dataset
from storage.domain.columns import LONGEST_TITLE
from storage.domain.errors import Conflict, NotFound, invalid
from storage.domain.operations import Operation
from storage.domain.sheets import Sheet
from storage.engine.rows.datasets import find_maker
from storage.engine.rows.tables import insert_table
from storage.laid_rows import lay_shared
from storage.report_runs import rows_of_dataset
from storage.reports import check_columns, read_columns_before, require_report
from storage.shared_rows import shared_rows
from storage.sheets import add_sheet, require_sheet
from storage.store import Store


@dataclass(frozen=True, slots=True)
class Converted:
    """The sheet that a version became; `operation` computes its columns, if it got any."""

    sheet: Sheet
    operation: Operation | None


def convert_dataset(
    store: Store, workspace: str, dataset_id: int, *, report_id: int | None = None, title: str | None = None
) -> Converted:
    """Make a table with a sheet of a version's rows and, if asked for, of a report's columns.

    No row is copied: the sheet shares the version's files. Dataset and report stay as they are; the user who
    made the dataset is named as the maker of the table.

    Raises:
        NotFound: no such dataset or report in the workspace.
        Conflict: the dataset is a draft, or a title is there twice.
        Invalid: the title is empty or too long.
        InvalidConfig: a column of the report does not fit the dataset.
        Unavailable: the disk is full.
    """
    if title is not None and not 1 <= len(title) <= LONGEST_TITLE:
        raise invalid("title", f"must have 1 to {LONGEST_TITLE} characters", "string_length")
    with store.catalog.read() as connection:
        who = find_maker(connection, workspace, dataset_id)
        if who is None:
            raise NotFound(f"No dataset has the id {dataset_id}")
        dataset = require_dataset(connection, who, dataset_id)
        if dataset.is_draft:
            raise Conflict(f"The dataset {dataset_id} is a draft: save it first")
        report = None if report_id is None else require_report(connection, who, report_id)
        columns, snapshot, next_row_no = rows_of_dataset(connection, store, dataset)
    added = () if report is None else report.columns
    reads = read_columns_before(store, who, added)
    now = store.now()
    sheet_id, table_id = store.new_id(), store.new_id()
    with (
        shared_rows(store, sheet_id, columns, snapshot, next_row_no) as shared,
        store.catalog.transaction() as connection,
    ):
        check_columns(connection, who, shared.titles, added, reads)
        values = {
            "id": table_id,
            "workspace_id": who.workspace_id,
            "title": dataset.group.name if title is None else title,
            "folder_id": dataset.group.folder_id,
            "created_at": now,
            "updated_at": now,
        }
        sheet = add_sheet(
            connection,
            store,
            who,
            table_id=table_id,
            table_no=insert_table(connection, values),
            title=f"{dataset.group.name} v{dataset.version_number}"[:255],
            index=None,
            blank=False,
            sheet_id=sheet_id,
        )
        operation = lay_shared(connection, store, who, sheet, shared, added, reads)
        details = {"dataset_id": dataset.id, "report_id": report_id}
        record_audit(
            connection, store, who, action="convert", kind="table", entity_id=table_id, details=details
        )
        return Converted(require_sheet(connection, who, table_id, sheet_id), operation)
