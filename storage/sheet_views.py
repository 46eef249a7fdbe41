"""Sheets for DuckDB: a file of views for each table, and the views that a query of the operator names."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from storage.dataset_views import add_dataset_views, count_changed_groups, publish_dataset_views
from storage.domain.columns import Column
from storage.domain.view_names import OVERLAY, RESERVED, distinct_names
from storage.engine.catalog import Connection
from storage.engine.rows.columns import select_columns
from storage.engine.rows.sheets import select_sheets
from storage.engine.rows.table_views import TableRow, select_changed_tables, select_tables_of
from storage.engine.rows.versions import find_version_state, select_named_versions
from storage.engine.snapshots import Snapshot
from storage.store import Store

if TYPE_CHECKING:
    from storage.engine.table_views import Duck

_MARKER = "views/tables.published"
_OLD = timedelta(hours=24)
AGAIN = timedelta(days=3)
"""How far back the daily publication looks: by then nobody reads what older files of a table named."""


@dataclass(frozen=True, slots=True)
class ShownSheet:
    """A view: its name and what it shows."""

    name: str
    columns: Sequence[Column]
    snapshot: Snapshot


def tables_key(workspace: str) -> str:
    return f"views/{workspace}.tables"


def view_file_key(workspace: str, table_id: UUID) -> str:
    return f"{tables_key(workspace)}/{table_id}.duckdb"


def sheet_views_due(store: Store) -> int:
    """Return how many tables and dataset groups have changed since their views were published."""
    since = _published_until(store)
    with store.catalog.read() as connection:
        changed = len(select_changed_tables(connection, since=since))
    return changed + count_changed_groups(store, since)


def publish_sheet_views(store: Store, *, again: timedelta = timedelta(0)) -> int:
    """Write the view files of what changed since the last time, tables and dataset groups; return how many.

    Also of what changed within `again`, and of everything where the files were published in another folder,
    for they name others by their place. A table's file has a schema called as the table with a view for each
    sheet, and for each saved version of it (`"sheet@3"`). It is replaced as one, or removed with its table.

    Raises:
        Unavailable: the disk is full.
    """
    from storage.engine.table_views import publish_table_views  # noqa: PLC0415

    as_of = store.now()
    since = min(_published_until(store), as_of - again)
    with store.catalog.read() as connection:
        changed = select_changed_tables(connection, since=since)
    named: dict[str, Collection[str]] = {}
    for table in changed:
        key = view_file_key(table.workspace, table.id)
        if table.deleted:
            store.data.remove(key)
            named[key.removesuffix(".duckdb")] = ()
            continue
        with store.catalog.read() as connection:
            shown = _sheets_of(connection, store, table)
        held = publish_table_views(store.data, key, _schema_name(table.title), shown)
        if held is not None:
            named[key.removesuffix(".duckdb")] = held
    named |= publish_dataset_views(store, since)
    with store.data.writing(_MARKER) as path:
        path.write_text(f"{as_of.isoformat()}\n{store.data.path('')}")
    _forget_overlays(store, named)
    return len(named)


def _schema_name(title: str) -> str:
    (name,) = distinct_names([title], taken=RESERVED)
    return name


def _published_until(store: Store) -> datetime:
    never = datetime.min.replace(tzinfo=UTC)
    try:
        moment, _, folder = store.data.path(_MARKER).read_text().partition("\n")
        # a commit may come to light a little after the moment that it is dated with
        until = datetime.fromisoformat(moment) - timedelta(seconds=60)
    except (FileNotFoundError, ValueError):
        return never
    return until if folder == str(store.data.path("")) else never


def _forget_overlays(store: Store, published: Mapping[str, Collection[str]]) -> None:
    """Remove what older view files of these tables read beside the segments, once nobody reads it any more.

    `published` are the overlays that the new files name, by how the keys of each table's overlays begin.
    """
    for key in store.data.files("views", before_epoch_s=(store.now() - _OLD).timestamp()):
        start, mark, _ = key.rpartition(OVERLAY)
        if mark and start in published and key not in published[start]:
            store.data.remove(key)


def _sheets_of(connection: Connection, store: Store, table: TableRow) -> list[ShownSheet]:
    found, versions = [], []
    sheets = select_sheets(connection, table.no, after=None, backwards=False, limit=100_000)
    for sheet, name in zip(sheets, distinct_names([one.title for one in sheets]), strict=True):
        head = store.snapshots.get(connection, sheet.head_no)
        found.append(ShownSheet(name, select_columns(connection, sheet.no), head))
        for number in select_named_versions(connection, sheet.no):
            versions += _version(connection, store, sheet.no, name, number)
    return versions + found  # the later one stays: a sheet called `a@3` rather than a version of `a`


def _version(connection: Connection, store: Store, sheet_no: int, name: str, number: int) -> list[ShownSheet]:
    state = find_version_state(connection, sheet_no, number)
    if state is None:
        return []
    snapshot = store.snapshots.get(connection, state[0])
    return [ShownSheet(f"{name}@{number}", state[1].columns, snapshot)]


def add_sheet_views(store: Store, connection: "Duck", workspace_id: int, query: str) -> None:
    """Add a view for each sheet that a query may name: its table's title and its own stand in the text."""
    from storage.engine.table_views import add_views  # noqa: PLC0415

    add_dataset_views(store, connection, workspace_id, query)
    text = query.casefold().replace('""', '"')
    with store.catalog.read() as catalog:
        tables = select_tables_of(catalog, workspace_id)
        names = distinct_names([table.title for table in tables], taken=RESERVED)
        for table, schema in zip(tables, names, strict=True):
            if schema.casefold() not in text:
                continue
            sheets = select_sheets(catalog, table.no, after=None, backwards=False, limit=100_000)
            shown, versions = [], []
            for sheet, name in zip(sheets, distinct_names([s.title for s in sheets]), strict=True):
                if name.casefold() not in text:
                    continue
                head = store.snapshots.get(catalog, sheet.head_no)
                shown.append(ShownSheet(name, select_columns(catalog, sheet.no), head))
                for number in set(re.findall(re.escape(name.casefold()) + r"@(\d{1,9})", text)):
                    versions += _version(catalog, store, sheet.no, name, int(number))
            add_views(store.data, connection, schema, versions + shown)
