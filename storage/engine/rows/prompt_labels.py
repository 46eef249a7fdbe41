"""Rows of release labels: each names one version of its prompt."""

from datetime import datetime

import sqlalchemy as sa

from storage.domain.prompts import ReleaseLabel
from storage.engine.catalog import Connection
from storage.engine.schema import prompt_labels, prompt_versions, prompts

# made once: read for every render, and making it costs as much as running it
_NAMES = (
    sa.select(prompt_labels.c.name)
    .where(prompt_labels.c.prompt_version_id == sa.bindparam("version_id"))
    .order_by(prompt_labels.c.name)
)


def put_label(connection: Connection, prompt_id: int, name: str, version_id: int, now: datetime) -> bool:
    """Create a label, or move it to another version, keeping its id; return whether it was new."""
    where = (prompt_labels.c.prompt_id == prompt_id) & (prompt_labels.c.name == name)
    moved = connection.execute(
        prompt_labels.update().where(where).values(prompt_version_id=version_id, updated_at=now)
    )
    if moved.rowcount:
        return False
    values = {"prompt_id": prompt_id, "name": name, "prompt_version_id": version_id}
    connection.execute(prompt_labels.insert().values(**values, created_at=now, updated_at=now))
    return True


def select_labels(connection: Connection, prompt_id: int) -> list[ReleaseLabel]:
    """The labels of a prompt in the order of their names."""
    return _select(connection, prompt_labels.c.prompt_id == prompt_id)


def select_labels_named(connection: Connection, workspace_id: int, name: str) -> list[ReleaseLabel]:
    """The labels of that name on any prompt of a workspace."""
    own = sa.select(prompts.c.id).where(prompts.c.workspace_id == workspace_id)
    return _select(connection, (prompt_labels.c.name == name) & prompt_labels.c.prompt_id.in_(own))


def find_label(connection: Connection, workspace_id: int, label_id: int) -> ReleaseLabel | None:
    """Find a label by its id."""
    own = sa.select(prompts.c.id).where(prompts.c.workspace_id == workspace_id)
    found = _select(connection, (prompt_labels.c.id == label_id) & prompt_labels.c.prompt_id.in_(own))
    return found[0] if found else None


def delete_label_row(connection: Connection, label_id: int) -> None:
    connection.execute(prompt_labels.delete().where(prompt_labels.c.id == label_id))


def select_label_names(connection: Connection, version_id: int) -> tuple[str, ...]:
    return tuple(connection.execute(_NAMES, {"version_id": version_id}).scalars())


def _select(connection: Connection, where: sa.ColumnElement[bool]) -> list[ReleaseLabel]:
    query = (
        sa.select(
            prompt_labels.c.id,
            prompt_labels.c.name,
            prompt_labels.c.prompt_id,
            prompt_labels.c.prompt_version_id,
            prompt_versions.c.version_number,
        )
        .join(prompt_versions, prompt_versions.c.id == prompt_labels.c.prompt_version_id)
        .where(where)
        .order_by(prompt_labels.c.name, prompt_labels.c.id)
    )
    return [ReleaseLabel(*row) for row in connection.execute(query)]
