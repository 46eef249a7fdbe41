"""Rows of the audit trail."""

from datetime import datetime
from typing import Any

from storage.engine.catalog import Connection
from storage.engine.schema import audit_entries


def insert_audit_entry(
    connection: Connection,
    *,
    workspace_id: int,
    user_id: int,
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
