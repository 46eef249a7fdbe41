"""Sheets: made blank or to be imported into, read, listed, deleted."""

from typing import Any
from uuid import UUID

from storage.audit import record_audit
from storage.domain.columns import RANK_GAP, Column
from storage.domain.errors import NotFound
from storage.domain.keys import Principal
from storage.domain.manifests import Fill, Manifest, Part
from storage.domain.operations import Operation
from storage.domain.paging import Page, PageRequest, page_of, plan_page
from storage.domain.sheets import EMPTY, FIRST_COLUMN, Sheet, place_index
from storage.domain.tables import free_title
from storage.engine.catalog import Connection
from storage.engine.rows.columns import insert_text_columns
from storage.engine.rows.operations import select_open
from storage.engine.rows.sheets import (
    count_sheets,
    find_sheet,
    has_title,
    insert_sheet,
    mark_sheet_deleted,
    select_sheets,
    shift_sheets,
)
from storage.engine.rows.tables import find_table_no, touch_table
from storage.engine.snapshots import fill_snapshot, reserve_snapshot
from storage.mirrors import columns_read_elsewhere, mark_gone
from storage.operations import fail_within
from storage.store import Store
from storage.versions import record_version

NO_TABLE, NO_SHEET = "No such table", "No such sheet"
_FIRST_ROW_NO = 1


def get_sheet(store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID) -> Sheet:
    """Return a sheet (E9).

    Raises:
        NotFound: no such sheet in that table of the workspace.
    """
    with store.catalog.read() as connection:
        return require_sheet(connection, who, table_id, sheet_id)


def require_sheet(connection: Connection, who: Principal, table_id: UUID, sheet_id: UUID) -> Sheet:
    """As `get_sheet`, within a transaction of the caller."""
    found = find_sheet(connection, who.workspace_id, table_id, sheet_id)
    if found is None:
        raise NotFound(NO_SHEET)
    return found


def list_sheets(store: Store, who: Principal, *, table_id: UUID, request: PageRequest) -> Page[Sheet]:
    """List the sheets of a table by index.

    Raises:
        NotFound: no such table.
        InvalidCursor: the cursor is of another list.
    """
    window = plan_page(store.cursor_key, request, sort="index", filters={"table": str(table_id)})
    with store.catalog.read() as connection:
        table_no = find_table_no(connection, who.workspace_id, table_id)
        if table_no is None:
            raise NotFound(NO_TABLE)
        found = select_sheets(
            connection,
            table_no,
            after=window.position,
            backwards=window.descending,
            limit=window.limit,
        )
    return page_of(store.cursor_key, window, found, lambda sheet: sheet.index)


def create_blank_sheet(
    store: Store, who: Principal, *, table_id: UUID, title: str | None = None, index: int | None = None
) -> Sheet:
    """Create a sheet with Column A and one empty row (E8 without a source).

    Raises:
        NotFound: no such table.
        Invalid: the index is negative.
    """
    with store.catalog.transaction() as connection:
        table_no = find_table_no(connection, who.workspace_id, table_id)
        if table_no is None:
            raise NotFound(NO_TABLE)
        if title is None:
            guess = count_sheets(connection, table_no) + 1
            title = free_title("Sheet", guess, lambda one: has_title(connection, table_no, one))
        return add_sheet(
            connection, store, who, table_id=table_id, table_no=table_no, title=title, index=index, blank=True
        )


def add_sheet(
    connection: Connection,
    store: Store,
    who: Principal,
    *,
    table_id: UUID,
    table_no: int,
    title: str,
    index: int | None,
    blank: bool,
    told: bool = True,
    sheet_id: UUID | None = None,
) -> Sheet:
    """Add a sheet with its version 1: blank (Column A, one empty row), or bare, to be imported into.

    `told`: an audit entry tells of it; not of a sheet that is none to clients.
    """
    now = store.now()
    at = place_index(index, count_sheets(connection, table_no))
    shift_sheets(connection, table_no, at)
    values: dict[str, Any] = {
        "id": sheet_id or store.new_id(),
        "table_no": table_no,
        "workspace_id": who.workspace_id,
        "title": title,
        "index": at,
        "row_count": 1 if blank else 0,
        "version_count": 1,
        "head_no": reserve_snapshot(connection, now),
        "next_row_no": _FIRST_ROW_NO + 1 if blank else _FIRST_ROW_NO,
        "writer_no": None,
        "created_at": now,
        "updated_at": now,
    }
    sheet = Sheet(no=insert_sheet(connection, values), table_id=table_id, **values)
    columns = _first_columns(connection, store, sheet) if blank else []
    fill = Fill(EMPTY, now)
    rows = [Part(_FIRST_ROW_NO, 1, {column.no: fill for column in columns}, now)] if blank else []
    fill_snapshot(connection, sheet.head_no, sheet.no, Manifest(tuple(rows)))
    record_version(
        connection,
        store,
        sheet_no=sheet.no,
        number=1,
        name="Sheet created",
        user_id=who.user_id,
        snapshot_no=sheet.head_no,
        row_count=sheet.row_count,
        title=title,
        index=at,
        columns=columns,
        source="automatic",
        deltas=[],
        now=now,
    )
    touch_table(connection, table_no, now)
    if told:
        record_audit(connection, store, who, action="create", kind="sheet", entity_id=sheet.id)
    return sheet


def _first_columns(connection: Connection, store: Store, sheet: Sheet) -> list[Column]:
    return insert_text_columns(
        connection,
        sheet_no=sheet.no,
        workspace_id=sheet.workspace_id,
        titles=[FIRST_COLUMN],
        ids=[store.new_id()],
        ranks=[RANK_GAP],
        now=sheet.created_at,
    )


def delete_sheet(store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID) -> list[Operation]:
    """Delete a sheet (E11); return the operations that this ended: they failed, and add nothing.

    What other sheets read of it turns stale, with an error that names it.

    Raises:
        NotFound: no such sheet.
    """
    now = store.now()
    with store.catalog.transaction() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        ended = select_open(connection, table_no=sheet.table_no, sheet_no=sheet.no)
        for operation in ended:
            fail_within(connection, store, operation.no, operation.attempt, "sheet deleted")
        read = columns_read_elsewhere(connection, [sheet.no])
        mark_sheet_deleted(connection, sheet, now)
        mark_gone(connection, store, [sheet.no], read, now)
        touch_table(connection, sheet.table_no, now)
        record_audit(connection, store, who, action="delete", kind="sheet", entity_id=sheet.id)
    return ended
