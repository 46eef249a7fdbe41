"""The commits of work on drafts that writes no rows: a version laid into the draft, a draft saved."""

from storage.dataset_outcomes import finish_draft
from storage.dataset_sheets import keep_version, lay_version
from storage.domain.datasets import Dataset, DatasetGroup
from storage.domain.drafts import DraftState
from storage.domain.imports import ImportRefused
from storage.domain.operations import DATASET_COPY, Operation
from storage.engine.catalog import Connection
from storage.engine.rows.datasets import find_dataset, find_draft
from storage.operations import succeed
from storage.store import Store


def commit_draft(store: Store, operation: Operation) -> Dataset:
    """Do what a claimed copy or save asks for, and end it well, in one transaction; return what came of it.

    Raises:
        ClaimRefused: the operation was cancelled, failed or taken over.
        ImportRefused: the draft was deleted, or its source is gone.
        In each case nothing was changed.
    """
    now = store.now()
    with store.catalog.transaction() as connection:
        draft = _require_draft(connection, operation)
        copying = operation.kind == DATASET_COPY
        rows = _copy(connection, store, draft.group, operation) if copying else draft.row_count
        kept = None
        if not copying or draft.draft_state is DraftState.COPYING_TO_SAVE:
            kept = keep_version(connection, store, draft.group, user_id=operation.user_id, now=now)
        message = f"{rows} rows copied" if copying else f"{rows} rows saved"
        succeed(connection, store, operation, message=message, rows_added=rows)
        return finish_draft(connection, store, operation, sheet_version=kept)


def _require_draft(connection: Connection, operation: Operation) -> Dataset:
    draft = find_draft(connection, int(operation.spec["dataset_group_id"]))
    if draft is None or draft.operation_no != operation.no:
        raise ImportRefused("The draft was deleted meanwhile")
    return draft


def _copy(connection: Connection, store: Store, group: DatasetGroup, operation: Operation) -> int:
    return lay_version(connection, store, group, int(operation.spec["sheet_version"])).row_count


def get_made_dataset(store: Store, operation: Operation) -> Dataset | None:
    """Return what came of the draft that an operation worked on; None once it is deleted."""
    with store.catalog.read() as connection:
        return find_dataset(connection, operation.workspace_id, int(operation.spec["dataset_id"]))
