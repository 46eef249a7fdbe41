"""Rows of workspaces, users and API keys."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from storage.domain.keys import ApiKey, KeyFacts, Principal, Workspace
from storage.engine.catalog import Connection, new_no
from storage.engine.schema import api_keys, users, workspaces


def select_workspaces(connection: Connection) -> list[Workspace]:
    query = sa.select(workspaces.c.id, workspaces.c.name, workspaces.c.created_at).order_by(workspaces.c.id)
    return [Workspace(*row) for row in connection.execute(query)]


def find_workspace_id(connection: Connection, name: str) -> int | None:
    return connection.execute(sa.select(workspaces.c.id).where(workspaces.c.name == name)).scalar()


def insert_workspace(connection: Connection, name: str, now: datetime) -> Workspace:
    result = connection.execute(workspaces.insert().values(name=name, created_at=now))
    return Workspace(new_no(result), name, now)


def ensure_user(
    connection: Connection, workspace_id: int, name: str, email: str | None, now: datetime
) -> int:
    """Return the id of the workspace's user of that name, made when new; a given email replaces."""
    where = (users.c.workspace_id == workspace_id) & (users.c.name == name)
    found = connection.execute(sa.select(users.c.id).where(where)).scalar()
    if found is None:
        values = {"workspace_id": workspace_id, "name": name, "email": email, "created_at": now}
        return new_no(connection.execute(users.insert().values(values)))
    if email is not None:
        connection.execute(users.update().where(users.c.id == found).values(email=email))
    return int(found)


def insert_key(connection: Connection, values: Mapping[str, Any]) -> int:
    return new_no(connection.execute(api_keys.insert().values(**values)))


def find_key_row(connection: Connection, key_id: int) -> Mapping[str, Any] | None:
    row = connection.execute(sa.select(api_keys).where(api_keys.c.id == key_id)).mappings().first()
    return None if row is None else dict(row)


def mark_revoked(connection: Connection, key_id: int, now: datetime) -> bool:
    """Revoke a key; False when it was revoked before."""
    where = (api_keys.c.id == key_id) & api_keys.c.revoked_at.is_(None)
    return connection.execute(api_keys.update().where(where).values(revoked_at=now)).rowcount == 1


_KEYS = (
    sa.select(
        api_keys.c.id,
        api_keys.c.prefix,
        workspaces.c.name.label("workspace"),
        users.c.name.label("user"),
        users.c.email,
        api_keys.c.scopes,
        api_keys.c.created_at,
        api_keys.c.expires_at,
        api_keys.c.revoked_at,
    )
    .join(workspaces, workspaces.c.id == api_keys.c.workspace_id)
    .join(users, users.c.id == api_keys.c.user_id)
    .order_by(api_keys.c.id)
)


def select_keys(connection: Connection, key_id: int | None = None) -> list[ApiKey]:
    query = _KEYS if key_id is None else _KEYS.where(api_keys.c.id == key_id)
    return [ApiKey(**{**row, "scopes": tuple(row["scopes"])}) for row in connection.execute(query).mappings()]


_FACTS = sa.select(
    api_keys.c.workspace_id,
    api_keys.c.user_id,
    users.c.name,
    users.c.email,
    api_keys.c.id,
    api_keys.c.scopes,
    api_keys.c.expires_at,
    api_keys.c.revoked_at,
).join(users, users.c.id == api_keys.c.user_id)


def find_key_facts(
    connection: Connection, *, sha256: str | None = None, key_id: int | None = None
) -> KeyFacts | None:
    """Look a key up by the hash of its text or by its id."""
    where = api_keys.c.sha256 == sha256 if sha256 is not None else api_keys.c.id == key_id
    row = connection.execute(_FACTS.where(where)).first()
    if row is None:
        return None
    workspace_id, user_id, name, email, found_id, scopes, expires_at, revoked_at = row
    who = Principal(workspace_id, user_id, name, email, found_id, frozenset(scopes))
    return KeyFacts(who, expires_at, revoked_at)


def find_user(connection: Connection, user_id: int) -> tuple[str, str | None] | None:
    """Return name and email of a user."""
    row = connection.execute(sa.select(users.c.name, users.c.email).where(users.c.id == user_id)).first()
    return None if row is None else (row[0], row[1])
