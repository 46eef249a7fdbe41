"""The audit trail: who did what to which entity, written in the transaction of the change."""

from typing import Any

from storage.domain.keys import Principal
from storage.engine.catalog import Connection
from storage.engine.rows.audit import insert_audit_entry
from storage.store import Store


def record_audit(
    connection: Connection,
    store: Store,
    who: Principal,
    *,
    action: str,
    kind: str,
    entity_id: object,
    details: dict[str, Any] | None = None,
) -> None:
    """Add one entry; `details` hold ids and names, never content."""
    insert_audit_entry(
        connection,
        workspace_id=who.workspace_id,
        user_id=who.user_id,
        action=action,
        kind=kind,
        entity_id=str(entity_id),
        details=details or {},
        created_at=store.now(),
    )
