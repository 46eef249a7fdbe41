"""Dataset groups: made, read, listed, changed, deleted with their versions."""

from storage.audit import record_audit
from storage.domain.datasets import DatasetGroup
from storage.domain.errors import Conflict, NotFound
from storage.domain.keys import Principal
from storage.domain.numbered_pages import NumberedPage
from storage.domain.operations import Operation
from storage.domain.prompts import ExternalId
from storage.domain.tables import Unchanged
from storage.draft_removal import remove_draft
from storage.engine.catalog import Connection
from storage.engine.rows.dataset_groups import (
    KIND,
    find_group,
    has_group_name,
    insert_group,
    mark_group_deleted,
    select_group_page,
    update_group,
)
from storage.engine.rows.external_ids import delete_external_ids
from storage.engine.rows.sheets import find_sheet_by_no, update_sheet
from storage.engine.rows.tables import mark_table_deleted
from storage.external_ids import attach_external_ids
from storage.folders import check_folder
from storage.store import Store


def create_group(
    store: Store,
    who: Principal,
    *,
    name: str,
    folder_id: int | None = None,
    external_ids: tuple[ExternalId, ...] = (),
) -> DatasetGroup:
    """Make a group; it has no versions and no draft.

    Raises:
        NotFound: the folder is unknown.
        Conflict: the name, or one of the external ids, is taken.
    """
    now = store.now()
    with store.catalog.transaction() as connection:
        check_folder(connection, who, folder_id)
        _check_free(connection, who, name)
        values = {
            "workspace_id": who.workspace_id,
            "name": name,
            "folder_id": folder_id,
            "user_id": who.user_id,
            "sheet_no": None,
            "created_at": now,
            "updated_at": now,
        }
        group_id = insert_group(connection, values)
        attach_external_ids(connection, who, KIND, group_id, external_ids)
        record_audit(
            connection, store, who, action="create", kind=KIND, entity_id=group_id, details={"name": name}
        )
        return require_group(connection, who, group_id)


def get_group(store: Store, who: Principal, group_id: int) -> DatasetGroup:
    """Return a group.

    Raises:
        NotFound: no such group in the workspace.
    """
    with store.catalog.read() as connection:
        return require_group(connection, who, group_id)


def require_group(connection: Connection, who: Principal, group_id: int) -> DatasetGroup:
    """As `get_group`, within a transaction of the caller."""
    found = find_group(connection, who.workspace_id, group_id)
    if found is None:
        raise NotFound(f"No dataset group has the id {group_id}")
    return found


def list_groups(
    store: Store, who: Principal, *, page: int, per_page: int, name: str | None = None
) -> NumberedPage[DatasetGroup]:
    """Return a page of groups, the newest first; `name` is a part of it, in any case."""
    with store.catalog.read() as connection:
        items, total = select_group_page(
            connection, who.workspace_id, name=name, offset=(page - 1) * per_page, limit=per_page
        )
    return NumberedPage(items, page, per_page, total)


def change_group(
    store: Store, who: Principal, group_id: int, *, name: str | None, folder_id: int | Unchanged | None
) -> DatasetGroup:
    """Rename a group or move it to another folder (None: to the root).

    Raises:
        NotFound: no such group or folder.
        Conflict: the name is taken.
    """
    with store.catalog.transaction() as connection:
        before = require_group(connection, who, group_id)
        new_name = before.name if name is None else name
        folder = before.folder_id if isinstance(folder_id, Unchanged) else folder_id
        after = {"name": new_name, "folder_id": folder}
        changed = {key: value for key, value in after.items() if value != getattr(before, key)}
        if not changed:
            return before
        if "name" in changed:
            _check_free(connection, who, new_name)
        check_folder(connection, who, folder)
        update_group(connection, group_id, {**changed, "updated_at": store.now()})
        if before.sheet_no is not None and "name" in changed:
            update_sheet(connection, before.sheet_no, {"title": new_name})
        record_audit(connection, store, who, action="update", kind=KIND, entity_id=group_id, details=after)
        return require_group(connection, who, group_id)


def delete_group(store: Store, who: Principal, group_id: int) -> list[Operation]:
    """Delete a group with its versions and its draft; return the operations that this ended.

    Its name and external ids are free again.

    Raises:
        NotFound: no such group.
    """
    with store.catalog.transaction() as connection:
        group = require_group(connection, who, group_id)
        ended = remove_draft(connection, store, group)
        delete_external_ids(connection, KIND, group.id)
        mark_group_deleted(connection, group.id, store.now())
        sheet = find_sheet_by_no(connection, group.sheet_no or 0)
        if sheet is not None:
            mark_table_deleted(connection, sheet.table_no, store.now())
        record_audit(
            connection,
            store,
            who,
            action="delete",
            kind=KIND,
            entity_id=group.id,
            details={"name": group.name},
        )
    return ended


def _check_free(connection: Connection, who: Principal, name: str) -> None:
    if has_group_name(connection, who.workspace_id, name):
        raise Conflict(f"A dataset group has the name {name}")
