"""Sheets renamed, moved within their table (E10), and brought back after a delete."""

from uuid import UUID

from storage.audit import record_audit
from storage.domain.deletions import UNDELETE_FOR
from storage.domain.errors import Conflict, NotFound
from storage.domain.keys import Principal
from storage.domain.sheets import Sheet, place_index
from storage.domain.versions import sheet_updated
from storage.engine.catalog import Connection
from storage.engine.rows.sheets import (
    count_sheets,
    find_deleted_sheet,
    move_sheet,
    shift_sheets,
    update_sheet,
)
from storage.engine.rows.tables import find_table_no, touch_table
from storage.mirrors import mark_back
from storage.sheets import NO_SHEET, NO_TABLE, require_sheet
from storage.store import Store
from storage.versions import add_version


def change_sheet(
    store: Store,
    who: Principal,
    *,
    table_id: UUID,
    sheet_id: UUID,
    title: str | None = None,
    index: int | None = None,
) -> Sheet:
    """Rename a sheet or move it to another place (E10); what changes nothing makes no version.

    The other sheets make room, without versions of their own; beyond the end is the end.

    Raises:
        NotFound: no such sheet.
        Invalid: the index is negative.
    """
    with store.catalog.transaction() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        last = count_sheets(connection, sheet.table_no) - 1
        at = sheet.index if index is None else place_index(index, last)
        before = {"title": sheet.title, "index": sheet.index}
        after = {"title": sheet.title if title is None else title, "index": at}
        if before == after:
            return sheet
        now = store.now()
        move_sheet(connection, sheet, at)
        update_sheet(connection, sheet.no, {**after, "updated_at": now})
        changed = require_sheet(connection, who, table_id, sheet_id)
        add_version(
            connection,
            store,
            who,
            changed,
            name="Sheet renamed" if before["index"] == at else "Sheet moved",
            source="automatic",
            deltas=[sheet_updated(sheet.id, before, after)],
            now=now,
        )
        touch_table(connection, sheet.table_no, now)
        record_audit(connection, store, who, action="update", kind="sheet", entity_id=sheet.id, details=after)
        return require_sheet(connection, who, table_id, sheet_id)


def check_deleted_sheet(store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID) -> None:
    """Raise NotFound unless the table has that sheet, live, or deleted at most 7 days ago."""
    with store.catalog.read() as connection:
        _find(connection, store, who, table_id, sheet_id)


def undelete_sheet(store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID) -> Sheet:
    """Bring a sheet back that was deleted at most 7 days ago, to its place, as it was.

    What other sheets read of it turns stale, and what it reads of others.

    Raises:
        NotFound: no such sheet in a table that is there, or it was deleted too long ago.
        Conflict: it is not deleted.
    """
    with store.catalog.transaction() as connection:
        sheet, deleted = _find(connection, store, who, table_id, sheet_id)
        if not deleted:
            raise Conflict("The sheet is not deleted")
        now = store.now()
        at = place_index(sheet.index, count_sheets(connection, sheet.table_no))
        shift_sheets(connection, sheet.table_no, at)
        update_sheet(connection, sheet.no, {"deleted_at": None, "index": at, "updated_at": now})
        mark_back(connection, store, [sheet.no], now)
        touch_table(connection, sheet.table_no, now)
        record_audit(connection, store, who, action="undelete", kind="sheet", entity_id=sheet.id)
        return require_sheet(connection, who, table_id, sheet_id)


def _find(
    connection: Connection, store: Store, who: Principal, table_id: UUID, sheet_id: UUID
) -> tuple[Sheet, bool]:
    if find_table_no(connection, who.workspace_id, table_id) is None:
        raise NotFound(NO_TABLE)
    found = find_deleted_sheet(
        connection, who.workspace_id, table_id, sheet_id, since=store.now() - UNDELETE_FOR
    )
    if found is None:
        raise NotFound(NO_SHEET)
    return found
