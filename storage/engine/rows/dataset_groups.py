"""Rows of dataset groups."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from storage.domain.datasets import DatasetGroup
from storage.engine.catalog import Connection, new_no
from storage.engine.registry_schema import dataset_groups, datasets
from storage.engine.rows.external_ids import select_external_ids_of

KIND = "dataset_group"

_FACTS = [dataset_groups.c[name] for name in DatasetGroup.__slots__ if name != "external_ids"]
_LIVE = dataset_groups.c.deleted_at.is_(None)


def insert_group(connection: Connection, values: dict[str, Any]) -> int:
    return new_no(connection.execute(dataset_groups.insert().values(values)))


def update_group(connection: Connection, group_id: int, values: dict[str, Any]) -> None:
    """Change a group; its name stands on its datasets, too."""
    connection.execute(dataset_groups.update().where(dataset_groups.c.id == group_id).values(values))
    if "name" in values:
        of_it = datasets.c.dataset_group_id == group_id
        connection.execute(datasets.update().where(of_it).values(name=values["name"]))


def find_group(connection: Connection, workspace_id: int, group_id: int) -> DatasetGroup | None:
    """Find a live group by its id."""
    where = (dataset_groups.c.id == group_id) & (dataset_groups.c.workspace_id == workspace_id) & _LIVE
    found = _groups(connection, where)
    return found[0] if found else None


def has_group_name(connection: Connection, workspace_id: int, name: str) -> bool:
    where = (dataset_groups.c.workspace_id == workspace_id) & (dataset_groups.c.name == name) & _LIVE
    return connection.execute(sa.select(dataset_groups.c.id).where(where)).first() is not None


def select_groups(connection: Connection, ids: Iterable[int]) -> dict[int, DatasetGroup]:
    """Return groups by id, deleted or not."""
    return {group.id: group for group in _groups(connection, dataset_groups.c.id.in_(sorted(set(ids))))}


def select_group_page(
    connection: Connection, workspace_id: int, *, name: str | None, offset: int, limit: int
) -> tuple[list[DatasetGroup], int]:
    """Return live groups, the newest first, and how many match; `name` is a part of it, in any case."""
    where = (dataset_groups.c.workspace_id == workspace_id) & _LIVE
    if name is not None:
        where &= dataset_groups.c.name.icontains(name, autoescape=True)
    counted = sa.select(sa.func.count()).select_from(dataset_groups).where(where)
    page = sa.select(dataset_groups.c.id).where(where).order_by(dataset_groups.c.id.desc())
    ids = list(connection.execute(page.offset(offset).limit(limit)).scalars())
    groups = select_groups(connection, ids)
    return [groups[id_] for id_ in ids], connection.execute(counted).scalar_one()


def mark_group_deleted(connection: Connection, group_id: int, now: datetime) -> None:
    """Mark a group and its versions as deleted; a draft is to be removed before."""
    update_group(connection, group_id, {"deleted_at": now, "updated_at": now})
    live = (datasets.c.dataset_group_id == group_id) & datasets.c.deleted_at.is_(None)
    connection.execute(datasets.update().where(live).values(deleted_at=now, updated_at=now))


def _groups(connection: Connection, where: sa.ColumnElement[bool]) -> list[DatasetGroup]:
    rows: Sequence[sa.RowMapping] = connection.execute(sa.select(*_FACTS).where(where)).mappings().all()
    external = select_external_ids_of(connection, KIND, [row["id"] for row in rows])
    groups = [DatasetGroup(**row) for row in rows]
    return [replace(group, external_ids=tuple(external.get(group.id, ()))) for group in groups]
