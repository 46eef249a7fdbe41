"""Tables: created with a first sheet, read, listed, deleted."""

from uuid import UUID

from storage.audit import record_audit
from storage.domain.deletions import UNDELETE_FOR
from storage.domain.errors import Conflict, NotFound
from storage.domain.keys import Principal
from storage.domain.operations import Operation
from storage.domain.paging import Page, PageRequest, page_of, plan_page
from storage.domain.sheets import FIRST_SHEET
from storage.domain.tables import UNTITLED, Table, Unchanged, free_title
from storage.engine.catalog import Connection
from storage.engine.rows.operations import select_open
from storage.engine.rows.sheets import select_sheet_nos
from storage.engine.rows.tables import (
    count_titles_from,
    find_deleted_table,
    find_table,
    find_table_no,
    had_title,
    has_folder,
    insert_table,
    mark_table_deleted,
    select_tables,
    update_table,
)
from storage.mirrors import columns_read_elsewhere, mark_back, mark_gone
from storage.operations import fail_within
from storage.sheets import NO_TABLE, add_sheet
from storage.store import Store


def get_table(store: Store, who: Principal, table_id: UUID) -> Table:
    """Return a table with the rows of each sheet (E7).

    Raises:
        NotFound: no such table in the workspace.
    """
    with store.catalog.read() as connection:
        found = find_table(connection, who.workspace_id, table_id)
    if found is None:
        raise NotFound(NO_TABLE)
    return found


def require_table_no(connection: Connection, who: Principal, table_id: UUID) -> int:
    """Return the number of a table, within a transaction of the caller.

    Raises:
        NotFound: no such table in the workspace.
    """
    found = find_table_no(connection, who.workspace_id, table_id)
    if found is None:
        raise NotFound(NO_TABLE)
    return found


def check_table(store: Store, who: Principal, table_id: UUID) -> None:
    """Raise NotFound unless the workspace has that table."""
    with store.catalog.read() as connection:
        require_table_no(connection, who, table_id)


def list_tables(
    store: Store,
    who: Principal,
    *,
    request: PageRequest,
    folder_id: int | None = None,
    name: str | None = None,
) -> Page[Table]:
    """List tables by age; `name` is any part of the title, in any case.

    Raises:
        InvalidCursor: the cursor is of another list.
    """
    filters = {"workspace": who.workspace_id, "folder_id": folder_id, "name": name}
    window = plan_page(store.cursor_key, request, sort="created_at", filters=filters)
    with store.catalog.read() as connection:
        found = select_tables(
            connection,
            who.workspace_id,
            folder_id=folder_id,
            name=name,
            after=window.position,
            descending=window.descending,
            limit=window.limit,
        )
    return page_of(store.cursor_key, window, found, lambda table: table.no)


def create_table(
    store: Store, who: Principal, *, title: str | None = None, folder_id: int | None = None
) -> Table:
    """Create a table with Sheet 1, Column A and one empty row (E6); without a title, one is made up.

    Raises:
        NotFound: the workspace has no such folder.
    """
    now = store.now()
    table_id = store.new_id()
    with store.catalog.transaction() as connection:
        if folder_id is not None and not has_folder(connection, who.workspace_id, folder_id):
            raise NotFound("No such folder")
        chosen = title or _untitled(connection, who.workspace_id)
        values = {
            "id": table_id,
            "workspace_id": who.workspace_id,
            "title": chosen,
            "folder_id": folder_id,
            "created_at": now,
            "updated_at": now,
        }
        no = insert_table(connection, values)
        add_sheet(
            connection,
            store,
            who,
            table_id=table_id,
            table_no=no,
            title=FIRST_SHEET,
            index=None,
            blank=True,
        )
        record_audit(connection, store, who, action="create", kind="table", entity_id=table_id)
        found = find_table(connection, who.workspace_id, table_id)
    if found is None:
        raise RuntimeError("the table just made is gone")
    return found


def _untitled(connection: Connection, workspace_id: int) -> str:
    guess = count_titles_from(connection, workspace_id, UNTITLED) + 1
    return free_title(UNTITLED, guess, lambda title: had_title(connection, workspace_id, title))


def change_table(
    store: Store, who: Principal, table_id: UUID, *, title: str | None, folder_id: int | Unchanged | None
) -> Table:
    """Rename a table or move it to another folder (None: to the root).

    Raises:
        NotFound: no such table or folder.
    """
    with store.catalog.transaction() as connection:
        no = require_table_no(connection, who, table_id)
        before = find_table(connection, who.workspace_id, table_id)
        if before is None:
            raise RuntimeError("the table just found is gone")
        moved = before.folder_id if isinstance(folder_id, Unchanged) else folder_id
        after = {"title": before.title if title is None else title, "folder_id": moved}
        if after == {"title": before.title, "folder_id": before.folder_id}:
            return before
        if moved is not None and not has_folder(connection, who.workspace_id, moved):
            raise NotFound("No such folder")
        update_table(connection, no, {**after, "updated_at": store.now()})
        record_audit(connection, store, who, action="update", kind="table", entity_id=table_id, details=after)
        found = find_table(connection, who.workspace_id, table_id)
    if found is None:
        raise RuntimeError("the table just changed is gone")
    return found


def check_deleted_table(store: Store, who: Principal, table_id: UUID) -> None:
    """Raise NotFound unless the workspace has that table, live, or deleted at most 7 days ago."""
    with store.catalog.read() as connection:
        _find_deleted(connection, store, who, table_id)


def undelete_table(store: Store, who: Principal, table_id: UUID) -> Table:
    """Bring a table back that was deleted at most 7 days ago, with the sheets that it had then.

    What other tables' sheets read of them turns stale, and what they read of others.

    Raises:
        NotFound: no such table, or it was deleted too long ago.
        Conflict: it is not deleted.
    """
    with store.catalog.transaction() as connection:
        no, deleted = _find_deleted(connection, store, who, table_id)
        if not deleted:
            raise Conflict("The table is not deleted")
        now = store.now()
        update_table(connection, no, {"deleted_at": None, "updated_at": now})
        mark_back(connection, store, select_sheet_nos(connection, no), now)
        record_audit(connection, store, who, action="undelete", kind="table", entity_id=table_id)
        found = find_table(connection, who.workspace_id, table_id)
    if found is None:
        raise RuntimeError("the table just brought back is gone")
    return found


def _find_deleted(connection: Connection, store: Store, who: Principal, table_id: UUID) -> tuple[int, bool]:
    since = store.now() - UNDELETE_FOR
    found = find_deleted_table(connection, who.workspace_id, table_id, since=since)
    if found is None:
        raise NotFound(NO_TABLE)
    return found


def delete_table(store: Store, who: Principal, table_id: UUID) -> list[Operation]:
    """Delete a table with its sheets (E20); return the operations that this ended: they add nothing.

    What sheets of other tables read of it turns stale, with an error that names it.

    Raises:
        NotFound: no such table.
    """
    now = store.now()
    with store.catalog.transaction() as connection:
        no = require_table_no(connection, who, table_id)
        ended = select_open(connection, table_no=no)
        for operation in ended:
            fail_within(connection, store, operation.no, operation.attempt, "table deleted")
        sheet_nos = select_sheet_nos(connection, no)
        read = columns_read_elsewhere(connection, sheet_nos)
        mark_table_deleted(connection, no, now)
        mark_gone(connection, store, sheet_nos, read, now)
        record_audit(connection, store, who, action="delete", kind="table", entity_id=table_id)
    return ended
