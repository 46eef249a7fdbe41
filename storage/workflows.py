"""Workflows: saved as numbered versions, found by name or id, listed (E27), deleted."""

from datetime import datetime
from typing import Any

from storage.audit import record_audit
from storage.domain.errors import NotFound
from storage.domain.keys import Principal
from storage.domain.numbered_pages import NumberedPage
from storage.domain.prompts import find_prompt_id_in as find_id_in
from storage.domain.workflows import (
    SavedWorkflow,
    Workflow,
    WorkflowLabel,
    WorkflowQuery,
    WorkflowVersion,
)
from storage.engine.catalog import Connection
from storage.engine.rows.external_ids import delete_external_ids
from storage.engine.rows.workflow_labels import put_workflow_label, select_workflow_labels
from storage.engine.rows.workflows import (
    KIND,
    find_workflow,
    find_workflow_version,
    insert_workflow,
    insert_workflow_version,
    select_workflow_page,
    update_workflow,
)
from storage.external_ids import attach_external_ids
from storage.folders import check_folder
from storage.store import Store


def save_workflow(store: Store, who: Principal, saved: SavedWorkflow) -> WorkflowVersion:
    """Save a new workflow, or the next version of the one that is named; labels are created or moved to it.

    Raises:
        NotFound: the folder, or a workflow that must be there, is unknown.
        Conflict: another workflow has one of the external ids.
    """
    now = store.now()
    with store.catalog.transaction() as connection:
        check_folder(connection, who, saved.folder_id)
        workflow_id, number = _next_version(connection, who, saved, now)
        version_id = insert_workflow_version(
            connection,
            {
                "workflow_id": workflow_id,
                "version_number": number,
                "definition": dict(saved.definition),
                "commit_message": saved.commit_message,
                "user_id": who.user_id,
                "created_at": now,
            },
        )
        for label in dict.fromkeys(saved.release_labels):
            put_workflow_label(connection, workflow_id, label, version_id, now)
        attach_external_ids(connection, who, KIND, workflow_id, saved.external_ids)
        workflow = find_workflow(connection, who.workspace_id, workflow_id=workflow_id)
        if workflow is None:
            raise RuntimeError("the workflow just saved is gone")
        record_audit(
            connection,
            store,
            who,
            action="create" if number == 1 else "update",
            kind=KIND,
            entity_id=workflow_id,
            details={
                "name": workflow.name,
                "version_number": number,
                "release_labels": list(saved.release_labels),
            },
        )
        return _require_version(connection, workflow)


def _next_version(
    connection: Connection, who: Principal, saved: SavedWorkflow, now: datetime
) -> tuple[int, int]:
    """Return the workflow that the version is of, made where it may be, and the version's number."""
    given: dict[str, Any] = {"updated_at": now}
    if saved.folder_id is not None:
        given["folder_id"] = saved.folder_id
    found = find_workflow(connection, who.workspace_id, workflow_id=saved.workflow_id, name=saved.name)
    if found is not None:
        number = found.latest_version_number + 1
        update_workflow(connection, found.id, given | {"latest_version_number": number})
        return found.id, number
    if saved.name is None or not saved.makes:
        raise _unknown(saved.name or str(saved.workflow_id))
    fresh = {
        "workspace_id": who.workspace_id,
        "name": saved.name,
        "user_id": who.user_id,
        "latest_version_number": 1,
        "created_at": now,
    }
    return insert_workflow(connection, fresh | given), 1


def get_workflow(
    store: Store, who: Principal, identifier: str, *, number: int | None = None, label: str | None = None
) -> WorkflowVersion:
    """Return a version by number or label, else the latest; an exact name wins over an id.

    Raises:
        NotFound: the workflow, the version or the label is unknown.
    """
    with store.catalog.read() as connection:
        workflow = _require_workflow(connection, who, identifier)
        return _require_version(connection, workflow, number=number, label=label)


def check_workflow(store: Store, who: Principal, identifier: str) -> None:
    """Raise NotFound unless the workspace has that workflow."""
    with store.catalog.read() as connection:
        _require_workflow(connection, who, identifier)


def list_workflow_labels(store: Store, who: Principal, identifier: str) -> list[WorkflowLabel]:
    """Return the release labels of a workflow in the order of their names.

    Raises:
        NotFound: the workflow is unknown.
    """
    with store.catalog.read() as connection:
        return select_workflow_labels(connection, _require_workflow(connection, who, identifier).id)


def list_workflows(
    store: Store, who: Principal, query: WorkflowQuery, *, page: int, per_page: int
) -> NumberedPage[Workflow]:
    """Return one page of the workflows that match (E27)."""
    with store.catalog.read() as connection:
        items, total = select_workflow_page(
            connection, who.workspace_id, query, offset=(page - 1) * per_page, limit=per_page
        )
    return NumberedPage(items, page, per_page, total)


def delete_workflow(store: Store, who: Principal, identifier: str) -> None:
    """Delete a workflow with its versions; its name and external ids are free again.

    Raises:
        NotFound: no such workflow.
    """
    with store.catalog.transaction() as connection:
        workflow = _require_workflow(connection, who, identifier)
        delete_external_ids(connection, KIND, workflow.id)
        update_workflow(connection, workflow.id, {"deleted_at": store.now()})
        details = {"name": workflow.name}
        record_audit(
            connection, store, who, action="delete", kind=KIND, entity_id=workflow.id, details=details
        )


def _require_workflow(connection: Connection, who: Principal, identifier: str) -> Workflow:
    found = find_workflow(connection, who.workspace_id, name=identifier)
    workflow_id = find_id_in(identifier)
    if found is None and workflow_id is not None:
        found = find_workflow(connection, who.workspace_id, workflow_id=workflow_id)
    if found is None:
        raise _unknown(identifier)
    return found


def _unknown(identifier: str) -> NotFound:
    return NotFound(f"No workflow has the name or id {identifier[:100]}")


def _require_version(
    connection: Connection, workflow: Workflow, *, number: int | None = None, label: str | None = None
) -> WorkflowVersion:
    found = find_workflow_version(connection, workflow, number=number, label=label)
    if found is None:
        wanted = f"version {number}" if label is None else f"release label {label}"
        raise NotFound(f"The workflow {workflow.name} has no {wanted}")
    return found
