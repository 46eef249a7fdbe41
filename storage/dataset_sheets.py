"""The sheet of a dataset group: out of clients' sight, each dataset version is a version of it.

So versions share segments, a draft is copied and saved without a row being written, and the import, the
readers and the upkeep of sheets are those of datasets.
"""

from datetime import datetime
from uuid import UUID

from storage.domain.datasets import DatasetGroup
from storage.domain.ids import hidden_id
from storage.domain.keys import Principal
from storage.domain.manifests import Manifest
from storage.domain.overlay import Overlay
from storage.domain.sheets import Sheet
from storage.engine.catalog import Connection
from storage.engine.rows.columns import mark_columns_deleted, select_columns
from storage.engine.rows.dataset_groups import update_group
from storage.engine.rows.sheets import find_sheet_by_no, update_sheet
from storage.engine.rows.tables import insert_table
from storage.engine.snapshots import commit, commit_again
from storage.restores import restore_columns
from storage.sheets import add_sheet
from storage.store import Store
from storage.versions import record_version, require_version


def add_hidden_sheet(
    connection: Connection, store: Store, who: Principal, title: str, sheet_id: UUID | None = None
) -> Sheet:
    """Make a bare sheet in a table of its own that is none to clients."""
    now = store.now()
    table_id = hidden_id(store.new_id())
    values = {
        "id": table_id,
        "workspace_id": who.workspace_id,
        "title": title,
        "folder_id": None,
        "hidden": True,
        "created_at": now,
        "updated_at": now,
    }
    return add_sheet(
        connection,
        store,
        who,
        table_id=table_id,
        table_no=insert_table(connection, values),
        title=title,
        index=None,
        blank=False,
        told=False,
        sheet_id=sheet_id,
    )


def emptied_sheet(connection: Connection, store: Store, who: Principal, group: DatasetGroup) -> Sheet:
    """Return a group's sheet, made if there is none, without columns and rows; its versions keep theirs."""
    if group.sheet_no is None:
        sheet = add_hidden_sheet(connection, store, who, group.name)
        update_group(connection, group.id, {"sheet_no": sheet.no})
        return sheet
    now = store.now()
    sheet = require_group_sheet(connection, group)
    head = store.snapshots.get(connection, sheet.head_no)
    columns = select_columns(connection, sheet.no)
    if columns or head.manifest.row_count:
        mark_columns_deleted(connection, [column.no for column in columns], now)
        commit(connection, head, Manifest(), overlay=Overlay(), next_row_no=sheet.next_row_no, now=now)
    return require_group_sheet(connection, group)


def require_group_sheet(connection: Connection, group: DatasetGroup) -> Sheet:
    """Return the sheet of a group that has rows."""
    sheet = find_sheet_by_no(connection, group.sheet_no or 0)
    if sheet is None:
        raise RuntimeError(f"the sheet of dataset group {group.id} is gone")
    return sheet


def lay_version(connection: Connection, store: Store, group: DatasetGroup, sheet_version: int) -> Sheet:
    """Make a version's rows and columns the draft's, for the cost of one row."""
    now = store.now()
    sheet = require_group_sheet(connection, group)
    source = require_version(connection, sheet.no, sheet_version)
    if source.structure is None:
        raise RuntimeError("a version was read without its structure")
    head = store.snapshots.get(connection, sheet.head_no)
    state = store.snapshots.get(connection, source.snapshot_no)
    commit_again(connection, head, state, next_row_no=sheet.next_row_no, now=now)
    restore_columns(connection, store, select_columns(connection, sheet.no), source.structure, sheet)
    return require_group_sheet(connection, group)


def keep_version(
    connection: Connection, store: Store, group: DatasetGroup, *, user_id: int, now: datetime
) -> int:
    """Keep what a group's sheet holds now as a version of it; return its number. No row is written."""
    sheet = require_group_sheet(connection, group)
    number = sheet.version_count + 1
    update_sheet(connection, sheet.no, {"version_count": number, "updated_at": now})
    record_version(
        connection,
        store,
        sheet_no=sheet.no,
        number=number,
        name="Draft saved",
        user_id=user_id,
        snapshot_no=sheet.head_no,
        row_count=sheet.row_count,
        title=sheet.title,
        index=sheet.index,
        columns=select_columns(connection, sheet.no),
        source="named",
        deltas=[],
        now=now,
    )
    return number
