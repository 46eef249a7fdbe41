"""Rows of whatever lies in a folder, by kind.

A further kind is a line in `_PLACES`, and an index on its table like that of the others.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from storage.domain.entities import LISTED, EntityType, Entry
from storage.engine.catalog import Connection
from storage.engine.registry_schema import ab_tests, dataset_groups, input_variable_sets, reports, workflows
from storage.engine.schema import folders, prompt_versions, prompts, tables

_MOST_BOUND = 500

_latest = (
    sa.select(prompt_versions.c.prompt_template["type"].as_string())
    .where(prompt_versions.c.prompt_id == prompts.c.id)
    .order_by(prompt_versions.c.version_number.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the entities of a kind are kept; marked deletions count as gone."""

    table: sa.Table
    name: str = "name"
    folder: str = "folder_id"
    no: str = "id"
    only: sa.ColumnElement[bool] | None = None

    def live(self, workspace_id: int) -> list[sa.ColumnElement[bool]]:
        where = [self.table.c.workspace_id == workspace_id]
        if self.only is not None:
            where.append(self.only)
        if self.marks_deleted:
            where.append(self.table.c.deleted_at.is_(None))
        return where

    @property
    def marks_deleted(self) -> bool:
        return "deleted_at" in self.table.c


_PLACES = {
    EntityType.FOLDER: _Place(folders, folder="parent_id"),
    EntityType.PROMPT: _Place(prompts),
    EntityType.SNIPPET: _Place(prompts, only=_latest.scalar_subquery() == "completion"),
    EntityType.WORKFLOW: _Place(workflows),
    EntityType.DATASET: _Place(dataset_groups),
    EntityType.REPORT: _Place(reports),
    EntityType.AB_TEST: _Place(ab_tests),
    EntityType.INPUT_VARIABLE_SET: _Place(input_variable_sets),
    EntityType.TABLE: _Place(tables, name="title", no="no", only=tables.c.hidden.is_(False)),
}


def select_entries(
    connection: Connection,
    workspace_id: int,
    kind: EntityType,
    folder_id: int | None,
    *,
    name: str | None = None,
    after: int | None = None,
    descending: bool = False,
    limit: int,
) -> list[Entry]:
    """Return entities of a kind in a folder (None: the root) by age; `name` is a part of it, in any case."""
    place = _PLACES[kind]
    columns = place.table.c
    where = [*place.live(workspace_id), columns[place.folder] == folder_id]
    if name is not None:
        where.append(columns[place.name].icontains(name, autoescape=True))
    if after is not None:
        where.append(columns[place.no] < after if descending else columns[place.no] > after)
    query = sa.select(
        columns[place.no].label("no"),
        columns.id.label("id"),
        columns[place.name].label("name"),
        columns[place.folder].label("folder_id"),
        columns.created_at,
        columns.updated_at,
    )
    order = columns[place.no].desc() if descending else columns[place.no]
    found = connection.execute(query.where(*where).order_by(order).limit(limit)).mappings()
    return [Entry(type=kind, **row) for row in found]


def find_places(
    connection: Connection, workspace_id: int, kind: EntityType, ids: Collection[int]
) -> dict[int, int | None]:
    """Return the folder (None: the root) of each of a workspace's entities; unknown ids are left out."""
    place = _PLACES[kind]
    columns = place.table.c
    query = sa.select(columns.id, columns[place.folder]).where(*place.live(workspace_id))
    found: dict[int, int | None] = {}
    for some in _batches(ids):
        found |= {row[0]: row[1] for row in connection.execute(query.where(columns.id.in_(some)))}
    return found


def put_in_folder(
    connection: Connection, kind: EntityType, ids: Collection[int], folder_id: int | None, now: datetime
) -> None:
    """Place entities in a folder (None: the root)."""
    place = _PLACES[kind]
    values: dict[str, Any] = {place.folder: folder_id, "updated_at": now}
    for some in _batches(ids):
        connection.execute(place.table.update().where(place.table.c.id.in_(some)).values(values))


def kinds_in_folder(connection: Connection, workspace_id: int, folder_id: int) -> list[EntityType]:
    """Return the kinds of which a folder holds at least one."""
    return [kind for kind in LISTED if select_entries(connection, workspace_id, kind, folder_id, limit=1)]


def clear_folder(connection: Connection, folder_id: int) -> None:
    """Let what was deleted from a folder point to it no more: if it comes back, it does so at the root."""
    for place in _PLACES.values():
        if place.marks_deleted:
            inside = place.table.c[place.folder] == folder_id
            connection.execute(place.table.update().where(inside).values({place.folder: None}))


def _batches(ids: Collection[int]) -> list[list[int]]:
    ordered = sorted(ids)
    return [ordered[at : at + _MOST_BOUND] for at in range(0, len(ordered), _MOST_BOUND)]
