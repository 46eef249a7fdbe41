"""Rows of release labels of workflows."""

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa

from storage.domain.workflows import WorkflowLabel
from storage.engine.catalog import Connection
from storage.engine.registry_schema import workflow_labels, workflow_versions


def put_workflow_label(
    connection: Connection, workflow_id: int, name: str, version_id: int, now: datetime
) -> None:
    """Let a label point at a version: made, or moved from the version that it named."""
    label = workflow_labels
    values = {"workflow_version_id": version_id, "updated_at": now}
    of_name = (label.c.workflow_id == workflow_id) & (label.c.name == name)
    if connection.execute(label.update().where(of_name).values(values)).rowcount == 0:
        fresh = {"workflow_id": workflow_id, "name": name, "created_at": now}
        connection.execute(label.insert().values(fresh | values))


def select_workflow_labels(connection: Connection, workflow_id: int) -> list[WorkflowLabel]:
    """Return a workflow's labels by name."""
    label, version = workflow_labels.c, workflow_versions.c
    query = (
        sa.select(label.id, label.name, version.id, version.version_number)
        .join(workflow_versions, version.id == label.workflow_version_id)
        .where(label.workflow_id == workflow_id)
        .order_by(label.name)
    )
    return [WorkflowLabel(*row) for row in connection.execute(query)]


def select_label_names_of(connection: Connection, workflow_ids: Sequence[int]) -> dict[int, list[str]]:
    """Return the names of the labels of each of some workflows, by name."""
    label = workflow_labels.c
    query = (
        sa.select(label.workflow_id, label.name)
        .where(label.workflow_id.in_(workflow_ids))
        .order_by(label.workflow_id, label.name)
    )
    found: dict[int, list[str]] = {}
    for workflow_id, name in connection.execute(query):
        found.setdefault(workflow_id, []).append(name)
    return found
