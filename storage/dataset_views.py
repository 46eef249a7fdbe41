"""Dataset versions for DuckDB: a file of views for each group, beside those of tables."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from storage.domain.columns import Column
from storage.domain.view_names import distinct_names, view_name
from storage.engine.catalog import Connection
from storage.engine.rows.dataset_views import (
    GroupRow,
    select_changed_groups,
    select_groups_of,
    select_live_versions,
)
from storage.engine.rows.versions import find_version_state
from storage.engine.snapshots import Snapshot
from storage.store import Store

if TYPE_CHECKING:
    from storage.engine.table_views import Duck

SCHEMA = "datasets"


@dataclass(frozen=True, slots=True)
class ShownDataset:
    """A view: its name and what it shows."""

    name: str
    columns: Sequence[Column]
    snapshot: Snapshot


def group_file_key(workspace: str, group_id: int) -> str:
    return f"views/{workspace}.datasets/{group_id}.duckdb"


def count_changed_groups(store: Store, since: datetime) -> int:
    """Return how many groups have changed since a moment."""
    with store.catalog.read() as connection:
        return len(select_changed_groups(connection, since=since))


def publish_dataset_views(store: Store, since: datetime) -> dict[str, Collection[str]]:
    """Write the view files of the groups that changed since a moment; return the overlays that each names.

    A file has a schema `datasets` with a view for each version (`"group@3"`), and one called as the group for
    the latest. It is replaced as one; a deleted group's is removed.

    Raises:
        Unavailable: the disk is full.
    """
    from storage.engine.table_views import publish_table_views  # noqa: PLC0415

    with store.catalog.read() as connection:
        changed = select_changed_groups(connection, since=since)
    named: dict[str, Collection[str]] = {}
    for group in changed:
        key = group_file_key(group.workspace, group.id)
        with store.catalog.read() as connection:
            shown = [] if group.deleted else _shown(connection, store, group, view_name(group.name))
        if shown:
            held = publish_table_views(store.data, key, SCHEMA, shown)
            if held is not None:
                named[key.removesuffix(".duckdb")] = held
        else:
            store.data.remove(key)
            named[key.removesuffix(".duckdb")] = ()
    return named


def add_dataset_views(store: Store, connection: "Duck", workspace_id: int, query: str) -> None:
    """Add a view for each version that a query may name: `datasets`, the group and the number stand in it."""
    from storage.engine.table_views import add_views  # noqa: PLC0415

    text = query.casefold().replace('""', '"')
    if SCHEMA not in text:
        return
    with store.catalog.read() as catalog:
        groups = select_groups_of(catalog, workspace_id)
        for group, name in zip(groups, distinct_names([one.name for one in groups]), strict=True):
            if name.casefold() not in text:
                continue
            numbers = {int(one) for one in re.findall(re.escape(name.casefold()) + r"@(\d{1,9})", text)}
            add_views(store.data, connection, SCHEMA, _shown(catalog, store, group, name, numbers))


def _shown(
    connection: Connection, store: Store, group: GroupRow, name: str, numbers: Collection[int] | None = None
) -> list[ShownDataset]:
    """Return the views of a group: of all versions or those of some numbers, and of the latest."""
    versions = select_live_versions(connection, group.id)
    found = [
        _version(connection, store, group, f"{name}@{number}", sheet_version)
        for number, sheet_version in versions
        if numbers is None or number in numbers
    ]
    if versions:
        found.append(_version(connection, store, group, name, versions[-1][1]))
    return found


def _version(
    connection: Connection, store: Store, group: GroupRow, name: str, sheet_version: int
) -> ShownDataset:
    state = find_version_state(connection, group.sheet_no or 0, sheet_version)
    if state is None:
        raise RuntimeError(f"the rows of a version of dataset group {group.id} are gone")
    snapshot_no, structure = state
    return ShownDataset(name, structure.columns, store.snapshots.get(connection, snapshot_no))
