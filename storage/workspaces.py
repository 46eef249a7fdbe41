"""Workspaces, their users and their API keys."""

from collections.abc import Sequence
from datetime import timedelta

from storage.audit import record_audit, record_operator_audit
from storage.domain.errors import Conflict, NotFound
from storage.domain.keys import (
    ApiKey,
    KeyFacts,
    Workspace,
    check_scopes,
    check_workspace_name,
    key_sha256,
    new_key,
    visible_prefix,
)
from storage.engine.catalog import Connection
from storage.engine.rows.workspaces import (
    ensure_user,
    find_key_facts,
    find_key_row,
    find_workspace_id,
    insert_key,
    insert_workspace,
    mark_revoked,
    select_keys,
    select_workspaces,
)
from storage.store import Store

DEFAULT_WORKSPACE = "default"


def list_workspaces(store: Store) -> list[Workspace]:
    with store.catalog.read() as connection:
        return select_workspaces(connection)


def create_workspace(store: Store, name: str) -> Workspace:
    """Create a workspace.

    Raises:
        ValueError: the name has characters that folders and schemas do not take.
        Conflict: the name is taken.
    """
    check_workspace_name(name)
    with store.catalog.transaction() as connection:
        if find_workspace_id(connection, name) is not None:
            raise Conflict(f"A workspace named {name} exists")
        return _new_workspace(connection, store, name, by="command line")


def _new_workspace(connection: Connection, store: Store, name: str, *, by: str) -> Workspace:
    made = insert_workspace(connection, name, store.now())
    record_operator_audit(
        connection,
        store,
        workspace_id=made.id,
        action="create",
        kind="workspace",
        entity_id=made.id,
        details={"name": name, "by": by},
    )
    return made


def bootstrap(store: Store) -> str | None:
    """Make the workspace `default` and its first key at first start; return the key if it was made up here.

    With a key in the settings that one is used, and nothing is returned.
    """
    with store.catalog.transaction() as connection:
        if select_workspaces(connection):
            return None
        workspace = _new_workspace(connection, store, DEFAULT_WORKSPACE, by="first start")
        user_id = ensure_user(connection, workspace.id, "admin", None, store.now())
        key = store.settings.api_key or new_key()
        key_id = insert_key(
            connection,
            {
                "workspace_id": workspace.id,
                "user_id": user_id,
                "prefix": visible_prefix(key),
                "sha256": key_sha256(key),
                "scopes": ["admin"],
                "created_at": store.now(),
            },
        )
        _audit_key(connection, store, key_id, "create", by="first start")
    return None if store.settings.api_key else key


def create_key(
    store: Store,
    *,
    workspace: str = DEFAULT_WORKSPACE,
    user: str = "admin",
    email: str | None = None,
    scopes: Sequence[str] = ("admin",),
    expires_in_days: int | None = None,
) -> tuple[ApiKey, str]:
    """Make a key for a user of a workspace (who is made when new); return it with its text.

    Raises:
        NotFound: no such workspace.
        ValueError: a scope is unknown.
    """
    chosen = check_scopes(scopes)
    key = new_key()
    now = store.now()
    with store.catalog.transaction() as connection:
        workspace_id = find_workspace_id(connection, workspace)
        if workspace_id is None:
            raise NotFound(f"No workspace is named {workspace}")
        key_id = insert_key(
            connection,
            {
                "workspace_id": workspace_id,
                "user_id": ensure_user(connection, workspace_id, user, email, now),
                "prefix": visible_prefix(key),
                "sha256": key_sha256(key),
                "scopes": chosen,
                "created_at": now,
                "expires_at": None if expires_in_days is None else now + timedelta(days=expires_in_days),
            },
        )
        _audit_key(connection, store, key_id, "create")
    return get_key(store, key_id), key


def list_keys(store: Store) -> list[ApiKey]:
    with store.catalog.read() as connection:
        return select_keys(connection)


def get_key(store: Store, key_id: int) -> ApiKey:
    """Return a key as it may be shown.

    Raises:
        NotFound: no such key.
    """
    with store.catalog.read() as connection:
        found = select_keys(connection, key_id)
    if not found:
        raise NotFound(f"No key has the id {key_id}")
    return found[0]


def revoke_key(store: Store, key_id: int) -> ApiKey:
    """Revoke a key: within a second it is refused everywhere.

    Raises:
        NotFound: no such key.
    """
    with store.catalog.transaction() as connection:
        if mark_revoked(connection, key_id, store.now()):
            _audit_key(connection, store, key_id, "revoke")
    return get_key(store, key_id)


def rotate_key(store: Store, key_id: int) -> tuple[ApiKey, str]:
    """Replace a key by a new one of the same user, scopes and expiry; the old one is revoked at once.

    Raises:
        NotFound: no such key.
        Conflict: it is revoked already.
    """
    key = new_key()
    with store.catalog.transaction() as connection:
        old = find_key_row(connection, key_id)
        if old is None:
            raise NotFound(f"No key has the id {key_id}")
        if not mark_revoked(connection, key_id, store.now()):
            raise Conflict(f"The key {key_id} is revoked; create a new one")
        kept = {name: old[name] for name in ("workspace_id", "user_id", "scopes", "expires_at")}
        fresh = {"prefix": visible_prefix(key), "sha256": key_sha256(key), "created_at": store.now()}
        new_id = insert_key(connection, kept | fresh)
        _audit_key(connection, store, new_id, "rotate", replaces=key_id)
    return get_key(store, new_id), key


def find_key(store: Store, key: str) -> KeyFacts | None:
    """Look a key up by its text; None when unknown. Expiry and revocation are the caller's to check."""
    with store.catalog.read() as connection:
        return find_key_facts(connection, sha256=key_sha256(key))


def _audit_key(
    connection: Connection,
    store: Store,
    key_id: int,
    action: str,
    *,
    by: str = "command line",
    **details: int,
) -> None:
    facts = find_key_facts(connection, key_id=key_id)
    if facts is None:
        raise NotFound(f"No key has the id {key_id}")
    record_audit(
        connection,
        store,
        facts.principal,
        action=action,
        kind="api_key",
        entity_id=key_id,
        details={"by": by, **details},
    )
