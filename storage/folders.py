"""Folders of the registry: a tree in each workspace, whose paths name them."""

from storage.audit import record_audit
from storage.domain.errors import Conflict, NotFound, invalid
from storage.domain.folders import MAX_DEPTH, Folder, join_folder_path, split_folder_path
from storage.domain.keys import Principal
from storage.engine.catalog import Connection
from storage.engine.rows.folders import find_child_folder, find_folder, folder_depth, insert_folder
from storage.store import Store


def create_folder(store: Store, who: Principal, *, name: str, parent_id: int | None = None) -> Folder:
    """Make a folder below another one, or at the root.

    Raises:
        NotFound: the parent is unknown.
        Conflict: a sibling has the name.
        Invalid: it would lie deeper than 50 folders.
    """
    with store.catalog.transaction() as connection:
        check_folder(connection, who, parent_id)
        if parent_id is not None and folder_depth(connection, parent_id) >= MAX_DEPTH:
            raise invalid("parent_id", f"folders go {MAX_DEPTH} deep at most")
        if find_child_folder(connection, who.workspace_id, parent_id, name):
            raise Conflict(f"A folder named {name} exists there")
        folder = insert_folder(connection, who.workspace_id, parent_id, name, store.now())
        record_audit(
            connection,
            store,
            who,
            action="create",
            kind="folder",
            entity_id=folder.id,
            details={"name": name, "parent_id": parent_id},
        )
    return folder


def check_folder(connection: Connection, who: Principal, folder_id: int | None) -> None:
    """Check within a transaction that a folder (None: the root) is one of the caller's workspace.

    Raises:
        NotFound: it is not.
    """
    if folder_id is not None and find_folder(connection, who.workspace_id, folder_id) is None:
        raise NotFound(f"No folder has the id {folder_id}")


def resolve_folder_id(store: Store, who: Principal, path: str) -> int:
    """Return the id of the folder that a dotted path names (E29).

    Raises:
        Invalid: a name in the path is empty.
        NotFound: the path leads nowhere; the message names how far it goes.
    """
    parent_id: int | None = None
    names = split_folder_path(path)
    with store.catalog.read() as connection:
        for depth, name in enumerate(names, 1):
            folder = find_child_folder(connection, who.workspace_id, parent_id, name)
            if folder is None:
                raise NotFound(f"No folder has the path {join_folder_path(names[:depth])}")
            parent_id = folder.id
    if parent_id is None:
        raise NotFound("The path names no folder")
    return parent_id
