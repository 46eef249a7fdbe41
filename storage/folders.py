"""Folders of the registry: a tree in each workspace, whose paths name them."""

from collections.abc import Collection
from typing import Any

from storage.audit import record_audit
from storage.domain.errors import Conflict, NotFound, invalid
from storage.domain.folders import MAX_DEPTH, Folder, FolderChange, join_folder_path, split_folder_path
from storage.domain.keys import Principal
from storage.engine.catalog import Connection
from storage.engine.rows.entities import clear_folder, kinds_in_folder
from storage.engine.rows.folders import (
    delete_folder_row,
    find_child_folder,
    find_clash,
    find_folder,
    folders_above,
    insert_folder,
    levels_below,
    update_folder_row,
    walk_path,
)
from storage.store import Store

KIND = "folder"


def create_folder(store: Store, who: Principal, *, name: str, parent_id: int | None = None) -> Folder:
    """Make a folder below another one, or at the root.

    Raises:
        NotFound: the parent is unknown.
        Conflict: a sibling has the name.
        Invalid: it would lie deeper than 50 folders.
    """
    with store.catalog.transaction() as connection:
        check_folder(connection, who, parent_id)
        if parent_id is not None and len(folders_above(connection, parent_id)) >= MAX_DEPTH:
            raise _too_deep("parent_id")
        if find_child_folder(connection, who.workspace_id, parent_id, name):
            raise _taken(name)
        folder = insert_folder(connection, who.workspace_id, parent_id, name, store.now())
        record_audit(
            connection,
            store,
            who,
            action="create",
            kind=KIND,
            entity_id=folder.id,
            details={"name": name, "parent_id": parent_id},
        )
    return folder


def get_folder(store: Store, who: Principal, folder_id: int) -> Folder:
    """Return a folder.

    Raises:
        NotFound: no such folder in the workspace.
    """
    with store.catalog.read() as connection:
        return _require_folder(connection, who, folder_id)


def update_folder(store: Store, who: Principal, folder_id: int, change: FolderChange) -> Folder:
    """Rename a folder, move it with all that lies in it, or both.

    Raises:
        NotFound: the folder or its new parent is unknown.
        Conflict: a sibling has the name.
        Invalid: it would lie in itself, or something in it deeper than 50 folders.
    """
    with store.catalog.transaction() as connection:
        before = _require_folder(connection, who, folder_id)
        values: dict[str, Any] = {
            "name": before.name if change.name is None else change.name,
            "parent_id": change.parent_id if change.moves else before.parent_id,
        }
        if values == {"name": before.name, "parent_id": before.parent_id}:
            return before
        check_folder(connection, who, values["parent_id"])
        check_not_within(connection, [folder_id], values["parent_id"], "parent_id")
        taken_by = find_child_folder(connection, who.workspace_id, values["parent_id"], values["name"])
        if taken_by is not None and taken_by.id != folder_id:
            raise _taken(values["name"])
        update_folder_row(connection, folder_id, values | {"updated_at": store.now()})
        check_depth(connection, [folder_id], values["parent_id"], "parent_id")
        record_audit(connection, store, who, action="update", kind=KIND, entity_id=folder_id, details=values)
        return _require_folder(connection, who, folder_id)


def delete_folder(store: Store, who: Principal, folder_id: int) -> None:
    """Delete a folder that holds nothing; what was deleted from it and comes back does so at the root.

    Raises:
        NotFound: no such folder.
        Conflict: it is not empty.
    """
    with store.catalog.transaction() as connection:
        folder = _require_folder(connection, who, folder_id)
        held = kinds_in_folder(connection, who.workspace_id, folder_id)
        if held:
            kinds = ", ".join(kind.kind.replace("_", " ") for kind in held)
            raise Conflict(f"The folder is not empty; it holds entities of these kinds: {kinds}")
        clear_folder(connection, folder_id)
        delete_folder_row(connection, folder_id)
        record_audit(
            connection,
            store,
            who,
            action="delete",
            kind=KIND,
            entity_id=folder_id,
            details={"name": folder.name, "parent_id": folder.parent_id},
        )


def check_folder(connection: Connection, who: Principal, folder_id: int | None) -> None:
    """Check within a transaction that a folder (None: the root) is one of the caller's workspace.

    Raises:
        NotFound: it is not.
    """
    if folder_id is not None:
        _require_folder(connection, who, folder_id)


def _require_folder(connection: Connection, who: Principal, folder_id: int) -> Folder:
    found = find_folder(connection, who.workspace_id, folder_id)
    if found is None:
        raise NotFound(f"No folder has the id {folder_id}")
    return found


def check_not_within(
    connection: Connection, folder_ids: Collection[int], parent_id: int | None, field: str
) -> None:
    """Check before folders move that none would lie in itself or in what lies in it.

    Raises:
        Invalid: one would; `field` of the body named the parent.
    """
    if parent_id is not None and not set(folder_ids).isdisjoint(folders_above(connection, parent_id)):
        raise invalid(field, "a folder cannot lie in itself, or in one that lies in it")


def check_free_names(
    connection: Connection, who: Principal, folder_ids: Collection[int], parent_id: int | None
) -> None:
    """Check before folders move that no two folders would have one name there.

    Raises:
        Conflict: two would.
    """
    clash = find_clash(connection, who.workspace_id, folder_ids, parent_id)
    if clash is not None:
        raise _taken(clash)


def check_depth(
    connection: Connection, folder_ids: Collection[int], parent_id: int | None, field: str
) -> None:
    """Check after folders moved that nothing in them lies too deep.

    Raises:
        Invalid: something does; `field` of the body named the parent.
    """
    above = 0 if parent_id is None else len(folders_above(connection, parent_id))
    if above + levels_below(connection, folder_ids) > MAX_DEPTH:
        raise _too_deep(field)


def _too_deep(field: str) -> Exception:
    return invalid(field, f"folders go {MAX_DEPTH} deep at most")


def _taken(name: str) -> Exception:
    return Conflict(f"A folder named {name} exists there")


def resolve_folder_id(store: Store, who: Principal, path: str) -> int:
    """Return the id of the folder that a dotted path names (E29).

    Raises:
        Invalid: a name in the path is empty.
        NotFound: the path leads nowhere; the message names how far it goes.
    """
    names = split_folder_path(path)
    # no folder lies deeper
    with store.catalog.read() as connection:
        depth, folder_id = walk_path(connection, who.workspace_id, names[:MAX_DEPTH])
    if depth < len(names):
        raise NotFound(f"No folder has the path {join_folder_path(names[: depth + 1])}")
    return folder_id
