"""Datasets, versions and drafts alike: listed (E25), read, deleted."""

from contextlib import ExitStack
from dataclasses import dataclass

from storage.audit import record_audit
from storage.dataset_outcomes import KIND
from storage.dataset_sheets import require_group_sheet
from storage.domain.datasets import Dataset, DatasetQuery
from storage.domain.errors import NotFound
from storage.domain.keys import Principal
from storage.domain.numbered_pages import NumberedPage
from storage.domain.operations import Operation
from storage.domain.paging import PageRequest
from storage.domain.rows import RowPage
from storage.draft_removal import remove_draft
from storage.engine.catalog import Connection
from storage.engine.rows.datasets import find_dataset, select_dataset_page, update_dataset
from storage.engine.rows.operations import find_operation_by_no
from storage.rows import list_rows
from storage.store import Store


@dataclass(frozen=True, slots=True)
class DatasetRead:
    """A dataset, and the operation that its draft waits for."""

    dataset: Dataset
    operation: Operation | None


def list_datasets(
    store: Store, who: Principal, query: DatasetQuery, *, page: int, per_page: int
) -> NumberedPage[Dataset]:
    """Return one page of the datasets that match (E25)."""
    with store.catalog.read() as connection:
        items, total = select_dataset_page(
            connection, who.workspace_id, query, offset=(page - 1) * per_page, limit=per_page
        )
    return NumberedPage(items, page, per_page, total)


def get_dataset(store: Store, who: Principal, dataset_id: int) -> DatasetRead:
    """Return a dataset that is not deleted.

    Raises:
        NotFound: no such dataset in the workspace.
    """
    with store.catalog.read() as connection:
        dataset = require_dataset(connection, who, dataset_id)
        no = dataset.operation_no
        return DatasetRead(dataset, None if no is None else find_operation_by_no(connection, no))


def check_dataset(store: Store, who: Principal, dataset_id: int) -> None:
    """Raise NotFound unless the workspace has that dataset."""
    with store.catalog.read() as connection:
        require_dataset(connection, who, dataset_id)


def require_dataset(connection: Connection, who: Principal, dataset_id: int) -> Dataset:
    """Return a dataset that is not deleted, within a transaction of the caller.

    Raises:
        NotFound: no such dataset in the workspace.
    """
    found = find_dataset(connection, who.workspace_id, dataset_id)
    if found is None:
        raise NotFound(f"No dataset has the id {dataset_id}")
    return found


def list_dataset_rows(
    store: Store, who: Principal, dataset_id: int, *, request: PageRequest, held: ExitStack | None = None
) -> RowPage:
    """List the rows of a dataset by index; of a draft as they are now. `held` as for the rows of sheets.

    Raises:
        NotFound: no such dataset.
        InvalidCursor: the cursor is of another list.
    """
    with store.catalog.read() as connection:
        dataset = require_dataset(connection, who, dataset_id)
        sheet = require_group_sheet(connection, dataset.group)
    return list_rows(
        store,
        who,
        table_id=sheet.table_id,
        sheet_id=sheet.id,
        request=request,
        version_number=dataset.sheet_version,
        held=held,
    )


def delete_dataset(store: Store, who: Principal, dataset_id: int) -> list[Operation]:
    """Delete a version, which is listed as deleted from then on, or remove a draft for good.

    Returns the operations that this ended; they publish nothing.

    Raises:
        NotFound: no such dataset.
    """
    now = store.now()
    with store.catalog.transaction() as connection:
        dataset = require_dataset(connection, who, dataset_id)
        ended: list[Operation] = []
        if dataset.is_draft:
            ended = remove_draft(connection, store, dataset.group)
        else:
            update_dataset(connection, dataset.id, {"deleted_at": now, "updated_at": now})
        details = {"dataset_group_id": dataset.group.id, "version_number": dataset.version_number}
        record_audit(
            connection, store, who, action="delete", kind=KIND, entity_id=dataset.id, details=details
        )
    return ended
