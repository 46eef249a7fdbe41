"""What lies in folders, whatever its kind: listed, and moved all or none (E28)."""

from collections.abc import Collection, Mapping, Sequence

from storage.audit import record_audit
from storage.domain.entities import (
    EntityRef,
    EntityType,
    Entry,
    kinds_asked_for,
    kinds_from,
    place_in_list,
)
from storage.domain.errors import NotFound
from storage.domain.keys import Principal, require
from storage.domain.paging import Page, PageRequest, Window, page_of, plan_page
from storage.engine.catalog import Connection
from storage.engine.rows.entities import find_places, put_in_folder, select_entries
from storage.folders import check_depth, check_folder, check_free_names, check_not_within
from storage.store import Store

_FIELD = "folder_id"


def list_entities(
    store: Store,
    who: Principal,
    *,
    request: PageRequest,
    folder_id: int | None = None,
    kinds: Collection[EntityType] = (),
    name: str | None = None,
) -> Page[Entry]:
    """List what lies in a folder (None: at the root), by kind and then by age.

    `kinds` empty means all; `name` is any part of it, in any case.

    Raises:
        NotFound: the folder is unknown.
        InvalidCursor: the cursor is of another list.
    """
    wanted = kinds_asked_for(kinds)
    filters = {
        "workspace": who.workspace_id,
        "list": "folder contents",
        "folder_id": folder_id,
        "kinds": wanted,
        "name": name,
    }
    window = plan_page(store.cursor_key, request, sort="kind", filters=filters)
    with store.catalog.read() as connection:
        check_folder(connection, who, folder_id)
        found = _read(connection, who, window, wanted, folder_id, name)
    return page_of(store.cursor_key, window, found, lambda entry: place_in_list(entry.type, entry.no))


def _read(
    connection: Connection,
    who: Principal,
    window: Window,
    wanted: Sequence[EntityType],
    folder_id: int | None,
    name: str | None,
) -> list[Entry]:
    found: list[Entry] = []
    for kind, after in kinds_from(window.position, wanted, descending=window.descending):
        left = window.limit - len(found)
        if left <= 0:
            break
        found += select_entries(
            connection,
            who.workspace_id,
            kind,
            folder_id,
            name=name,
            after=after,
            descending=window.descending,
            limit=left,
        )
    return found


def move_entities(store: Store, who: Principal, entities: Sequence[EntityRef], folder_id: int | None) -> int:
    """Move entities to a folder (None: the root), all or none; return how many were named (E28).

    Raises:
        Forbidden: the key may not write the kind of one of them.
        NotFound: one of them, or the folder, is unknown.
        Conflict: two folders would have one name there.
        Invalid: a folder would lie in itself, or something in it deeper than 50 folders.
    """
    ids_of: dict[EntityType, set[int]] = {}
    for entity in entities:
        require(who, entity.type.scope)
        ids_of.setdefault(entity.type, set()).add(entity.id)
    with store.catalog.transaction() as connection:
        check_folder(connection, who, folder_id)
        before = {kind: _require_all(connection, who, kind, ids) for kind, ids in ids_of.items()}
        moving = ids_of.get(EntityType.FOLDER, set())
        if moving:
            check_not_within(connection, moving, folder_id, _FIELD)
            check_free_names(connection, who, moving, folder_id)
        now = store.now()
        for kind, places in before.items():
            moved = [entity_id for entity_id, place in places.items() if place != folder_id]
            put_in_folder(connection, kind, moved, folder_id, now)
            _record_moves(connection, store, who, kind, {id_: places[id_] for id_ in moved}, folder_id)
        if moving:
            check_depth(connection, moving, folder_id, _FIELD)
    # a snippet is a prompt: named as both, it is still one
    prompts = ids_of.get(EntityType.PROMPT, set()) & ids_of.get(EntityType.SNIPPET, set())
    return sum(map(len, ids_of.values())) - len(prompts)


def _require_all(
    connection: Connection, who: Principal, kind: EntityType, ids: Collection[int]
) -> dict[int, int | None]:
    found = find_places(connection, who.workspace_id, kind, ids)
    unknown = sorted(set(ids) - set(found))
    if unknown:
        raise NotFound(f"No {kind.kind.replace('_', ' ')} has the id {unknown[0]}; nothing was moved")
    return found


def _record_moves(
    connection: Connection,
    store: Store,
    who: Principal,
    kind: EntityType,
    moved_from: Mapping[int, int | None],
    folder_id: int | None,
) -> None:
    for entity_id, place in moved_from.items():
        details = {"folder_id": folder_id, "from": place}
        record_audit(
            connection, store, who, action="move", kind=kind.kind, entity_id=entity_id, details=details
        )
