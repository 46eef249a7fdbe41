"""A draft removed because its caller wants it gone: work on it ends, and publishes nothing."""

from storage.domain.datasets import DatasetGroup
from storage.domain.drafts import Trigger, plan_move
from storage.domain.operations import Operation
from storage.engine.catalog import Connection
from storage.engine.rows.datasets import delete_dataset_row, find_draft
from storage.engine.rows.operations import find_operation_by_no
from storage.operations import fail_within
from storage.store import Store

DELETED = "draft deleted"


def remove_draft(connection: Connection, store: Store, group: DatasetGroup) -> list[Operation]:
    """Remove a group's draft, if there is one; return the operations that this ended."""
    draft = find_draft(connection, group.id)
    if draft is None:
        return []
    plan_move(draft.draft_state, Trigger.DELETE)
    # first the draft: what its work would do to it at its end is done to nothing
    delete_dataset_row(connection, draft.id)
    operation = None if draft.operation_no is None else find_operation_by_no(connection, draft.operation_no)
    if operation is None or not fail_within(connection, store, operation.no, operation.attempt, DELETED):
        return []
    return [operation]
