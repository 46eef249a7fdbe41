"""Rows of datasets: versions and drafts of groups."""

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from storage.domain.datasets import Dataset, DatasetQuery, LinkKind
from storage.domain.drafts import DRAFT_NUMBER, DraftExists
from storage.domain.keys import Principal
from storage.engine.catalog import Connection, new_no
from storage.engine.registry_schema import dataset_groups, dataset_links, datasets, reports
from storage.engine.rows.dataset_groups import KIND as GROUP_KIND
from storage.engine.rows.dataset_groups import select_groups
from storage.engine.rows.external_ids import find_owner
from storage.engine.rows.reports import USED_DATASET
from storage.engine.schema import users, workspaces

_FACTS = [
    datasets.c.dataset_group_id,
    *(datasets.c[name] for name in Dataset.__slots__ if name != "group"),
]


def insert_dataset(connection: Connection, values: dict[str, Any]) -> int:
    """Add a dataset; return its id.

    Raises:
        DraftExists: it is a draft, and the group has one: the database keeps a second one out.
    """
    try:
        return new_no(connection.execute(datasets.insert().values(values)))
    except IntegrityError as error:
        if values["version_number"] != DRAFT_NUMBER:
            raise
        raise DraftExists("The dataset group has a draft: save or delete it first") from error


def update_dataset(connection: Connection, dataset_id: int, values: dict[str, Any]) -> None:
    connection.execute(datasets.update().where(datasets.c.id == dataset_id).values(values))


def delete_dataset_row(connection: Connection, dataset_id: int) -> None:
    """Remove a draft; nothing of it is kept."""
    connection.execute(dataset_links.delete().where(dataset_links.c.dataset_id == dataset_id))
    connection.execute(datasets.delete().where(datasets.c.id == dataset_id))


def find_dataset(connection: Connection, workspace_id: int, dataset_id: int) -> Dataset | None:
    """Find a live dataset by its id."""
    return _one(
        connection,
        (datasets.c.id == dataset_id)
        & (datasets.c.workspace_id == workspace_id)
        & datasets.c.deleted_at.is_(None),
    )


def find_maker(connection: Connection, workspace: str, dataset_id: int) -> Principal | None:
    """Return the user who made a dataset of a workspace, for work that the operator does in that name."""
    query = (
        sa.select(datasets.c.workspace_id, users.c.id, users.c.name, users.c.email)
        .join(users, users.c.id == datasets.c.user_id)
        .join(workspaces, workspaces.c.id == datasets.c.workspace_id)
        .where(datasets.c.id == dataset_id, workspaces.c.name == workspace)
    )
    row = connection.execute(query).first()
    return None if row is None else Principal(*row, key_id=0, scopes=frozenset({"write"}))


def find_draft(connection: Connection, group_id: int) -> Dataset | None:
    """Find the draft of a group."""
    return _one(
        connection, (datasets.c.dataset_group_id == group_id) & (datasets.c.version_number == DRAFT_NUMBER)
    )


def find_latest(connection: Connection, group_id: int) -> Dataset | None:
    """Find the newest version of a group that is not deleted."""
    numbers = sa.select(sa.func.max(datasets.c.version_number)).where(
        datasets.c.dataset_group_id == group_id, datasets.c.deleted_at.is_(None)
    )
    newest = connection.execute(numbers).scalar()
    if newest is None or newest == DRAFT_NUMBER:
        return None
    return _one(connection, (datasets.c.dataset_group_id == group_id) & (datasets.c.version_number == newest))


def next_number(connection: Connection, group_id: int) -> int:
    """Return the number of a group's next version; those of deleted ones are not given again."""
    query = sa.select(sa.func.max(datasets.c.version_number)).where(datasets.c.dataset_group_id == group_id)
    return max(0, connection.execute(query).scalar() or 0) + 1


def insert_links(connection: Connection, dataset_id: int, links: Iterable[tuple[LinkKind, int]]) -> None:
    """Keep what a dataset's filter names."""
    for kind, entity_id in sorted(set(links)):
        values = {"kind": kind, "entity_id": entity_id, "dataset_id": dataset_id}
        connection.execute(dataset_links.insert().values(values))


def select_dataset_page(
    connection: Connection, workspace_id: int, query: DatasetQuery, *, offset: int, limit: int
) -> tuple[list[Dataset], int]:
    """Return datasets in the order asked for, ties by id in the same direction, and how many match.

    The page is found by ids alone, over one of the indexes made for that; only its rows are then read.
    """
    where = _matches(connection, workspace_id, query)
    if where is None:
        return [], 0
    total = connection.execute(sa.select(sa.func.count()).select_from(datasets).where(*where)).scalar_one()
    keys = (datasets.c[query.sort_by], datasets.c.id)
    order = [key.desc() if query.sort_order == "desc" else key for key in keys]
    page = sa.select(datasets.c.id).where(*where).order_by(*order).offset(offset).limit(limit)
    ids = list(connection.execute(page).scalars())
    found = {one.id: one for one in _datasets(connection, datasets.c.id.in_(ids))}
    return [found[id_] for id_ in ids], total


def _one(connection: Connection, where: sa.ColumnElement[bool]) -> Dataset | None:
    found = _datasets(connection, where)
    return found[0] if found else None


def _datasets(connection: Connection, where: sa.ColumnElement[bool]) -> list[Dataset]:
    rows: Sequence[sa.RowMapping] = connection.execute(sa.select(*_FACTS).where(where)).mappings().all()
    groups = select_groups(connection, (row["dataset_group_id"] for row in rows))
    found = []
    for row in rows:
        values: dict[str, Any] = dict(row)
        group = groups[values.pop("dataset_group_id")]
        values["column_names"] = tuple(values["column_names"])
        found.append(Dataset(group=group, **values))
    return found


def _matches(
    connection: Connection, workspace_id: int, query: DatasetQuery
) -> list[sa.ColumnElement[bool]] | None:
    """Spell a query's conditions; None when nothing can match."""
    columns = datasets.c
    where = [columns.workspace_id == workspace_id]
    if query.status != "all":
        deleted = columns.deleted_at.is_not(None)
        where.append(deleted if query.status == "deleted" else ~deleted)
    if query.group_id is not None:
        where.append(columns.dataset_group_id == query.group_id)
    if query.name is not None:
        # groups are fewer, and their ids stand in every index of datasets
        named = dataset_groups.c.name.icontains(query.name, autoescape=True)
        of_name = sa.select(dataset_groups.c.id).where(dataset_groups.c.workspace_id == workspace_id, named)
        where.append(columns.dataset_group_id.in_(of_name))
    if query.report_id is not None:
        of_it = (reports.c.id == query.report_id) | (reports.c.parent_id == query.report_id)
        used = sa.select(USED_DATASET).where(of_it, reports.c.workspace_id == workspace_id)
        where.append(columns.id.in_(used.where(USED_DATASET.is_not(None))))
    for kind, entity_id in query.links:
        linked = sa.select(dataset_links.c.dataset_id).where(
            dataset_links.c.kind == kind, dataset_links.c.entity_id == entity_id
        )
        where.append(columns.id.in_(linked))
    if query.created_by_email is not None:
        email = sa.func.lower(users.c.email) == query.created_by_email.lower()
        creators = sa.select(users.c.id).where(users.c.workspace_id == workspace_id, email)
        found = list(connection.execute(creators).scalars())
        if not found:
            return None
        where.append(columns.user_id.in_(found))
    if query.external_id is not None:
        owner = find_owner(connection, workspace_id, GROUP_KIND, query.external_id)
        if owner is None:
            return None
        where.append(columns.dataset_group_id == owner)
    return [*where, *_bounds(query)]


def _bounds(query: DatasetQuery) -> list[sa.ColumnElement[bool]]:
    bounds = []
    for column, least, most in (
        (datasets.c.created_at, query.created_after, query.created_before),
        (datasets.c.updated_at, query.updated_after, query.updated_before),
    ):
        if least is not None:
            bounds.append(column >= least)
        if most is not None:
            bounds.append(column <= most)
    return bounds
