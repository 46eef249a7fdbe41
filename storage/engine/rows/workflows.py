"""Rows of workflows and their versions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from storage.domain.workflows import Workflow, WorkflowQuery, WorkflowVersion
from storage.engine.catalog import Connection, new_no
from storage.engine.registry_schema import workflow_labels, workflow_versions, workflows
from storage.engine.rows.external_ids import find_owner, select_external_ids_of
from storage.engine.rows.workflow_labels import select_label_names_of
from storage.engine.schema import users

KIND = "workflow"

_LIVE = workflows.c.deleted_at.is_(None)
_FACTS = [workflows.c[name] for name in Workflow.__slots__ if name not in {"release_labels", "external_ids"}]


def find_workflow(
    connection: Connection, workspace_id: int, *, workflow_id: int | None = None, name: str | None = None
) -> Workflow | None:
    """Find a live workflow by its id or its name."""
    query = sa.select(*_FACTS).where(workflows.c.workspace_id == workspace_id, _LIVE)
    query = query.where(workflows.c.id == workflow_id if name is None else workflows.c.name == name)
    found = _whole(connection, connection.execute(query).mappings().all())
    return found[0] if found else None


def _whole(connection: Connection, rows: Sequence[sa.RowMapping]) -> list[Workflow]:
    ids = [row["id"] for row in rows]
    labels = select_label_names_of(connection, ids)
    external = select_external_ids_of(connection, KIND, ids)
    return [
        replace(
            Workflow(**row),
            release_labels=tuple(labels.get(row["id"], ())),
            external_ids=tuple(external.get(row["id"], ())),
        )
        for row in rows
    ]


def insert_workflow(connection: Connection, values: dict[str, Any]) -> int:
    return new_no(connection.execute(workflows.insert().values(values)))


def update_workflow(connection: Connection, workflow_id: int, values: dict[str, Any]) -> None:
    connection.execute(workflows.update().where(workflows.c.id == workflow_id).values(values))


def insert_workflow_version(connection: Connection, values: dict[str, Any]) -> int:
    return new_no(connection.execute(workflow_versions.insert().values(values)))


def find_workflow_version(
    connection: Connection, workflow: Workflow, *, number: int | None = None, label: str | None = None
) -> WorkflowVersion | None:
    """Find a version by its number or by the label that points at it; neither means the latest."""
    version = workflow_versions
    query = sa.select(version).where(version.c.workflow_id == workflow.id)
    if label is None:
        query = query.where(version.c.version_number == (number or workflow.latest_version_number))
    else:
        query = query.join(workflow_labels, workflow_labels.c.workflow_version_id == version.c.id)
        query = query.where(workflow_labels.c.workflow_id == workflow.id, workflow_labels.c.name == label)
    row = connection.execute(query).mappings().first()
    if row is None:
        return None
    return WorkflowVersion(
        workflow=workflow,
        id=row["id"],
        number=row["version_number"],
        definition=row["definition"],
        commit_message=row["commit_message"],
        user_id=row["user_id"],
        created_at=row["created_at"],
    )


def select_workflow_page(
    connection: Connection, workspace_id: int, query: WorkflowQuery, *, offset: int, limit: int
) -> tuple[list[Workflow], int]:
    """Return live workflows in the order asked for, ties by id in the same direction, and how many match.

    The page is found by ids alone, over one of the indexes made for that; only its rows are then read.
    """
    where = _matches(connection, workspace_id, query)
    if where is None:
        return [], 0
    total = connection.execute(sa.select(sa.func.count()).select_from(workflows).where(*where)).scalar_one()
    keys = (workflows.c[query.sort_by], workflows.c.id)
    order = [key.desc() if query.sort_order == "desc" else key for key in keys]
    page = sa.select(workflows.c.id).where(*where).order_by(*order).offset(offset).limit(limit)
    ids = list(connection.execute(page).scalars())
    rows = connection.execute(sa.select(*_FACTS).where(workflows.c.id.in_(ids))).mappings()
    row_of = {row["id"]: row for row in rows}
    return _whole(connection, [row_of[id_] for id_ in ids]), total


def _matches(
    connection: Connection, workspace_id: int, query: WorkflowQuery
) -> list[sa.ColumnElement[bool]] | None:
    """Spell a query's conditions; None when nothing can match."""
    columns = workflows.c
    where = [columns.workspace_id == workspace_id, _LIVE]
    if query.created_by_email is not None:
        email = sa.func.lower(users.c.email) == query.created_by_email.lower()
        creators = sa.select(users.c.id).where(users.c.workspace_id == workspace_id, email)
        found = list(connection.execute(creators).scalars())
        if not found:
            return None
        where.append(columns.user_id.in_(found))
    if query.external_id is not None:
        owner = find_owner(connection, workspace_id, KIND, query.external_id)
        if owner is None:
            return None
        where.append(columns.id == owner)
    for column, least, most in (
        (columns.created_at, query.created_after, query.created_before),
        (columns.updated_at, query.updated_after, query.updated_before),
    ):
        if least is not None:
            where.append(column >= least)
        if most is not None:
            where.append(column <= most)
    return where
