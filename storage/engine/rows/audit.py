"""Rows of the audit trail: added and read, never changed."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from storage.domain.audit import AuditEntry
from storage.engine.catalog import Connection
from storage.engine.schema import audit_entries, users


def insert_audit_entry(
    connection: Connection,
    *,
    workspace_id: int,
    user_id: int | None,
    action: str,
    kind: str,
    entity_id: str,
    details: dict[str, Any],
    created_at: datetime,
) -> None:
    connection.execute(
        audit_entries.insert().values(
            workspace_id=workspace_id,
            user_id=user_id,
            action=action,
            kind=kind,
            entity_id=entity_id,
            details=details,
            created_at=created_at,
        )
    )


def select_audit_entries(
    connection: Connection,
    workspace_id: int,
    *,
    kind: str | None,
    action: str | None,
    entity_id: str | None,
    after: int | None,
    descending: bool,
    limit: int,
) -> list[AuditEntry]:
    """Return a workspace's entries by age, from beyond an id."""
    entries = audit_entries
    created_by = sa.func.coalesce(users.c.email, users.c.name).label("created_by")
    query = (
        sa.select(*entries.c, created_by)
        .outerjoin(users, users.c.id == entries.c.user_id)
        .where(entries.c.workspace_id == workspace_id)
    )
    for column, wanted in (
        (entries.c.kind, kind),
        (entries.c.action, action),
        (entries.c.entity_id, entity_id),
    ):
        if wanted is not None:
            query = query.where(column == wanted)
    if after is not None:
        query = query.where(entries.c.id < after if descending else entries.c.id > after)
    query = query.order_by(entries.c.id.desc() if descending else entries.c.id).limit(limit)
    return [AuditEntry(**row) for row in connection.execute(query).mappings()]
