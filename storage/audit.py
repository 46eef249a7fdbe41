"""The audit trail: who did what to which entity, written in the transaction of the change."""

from typing import Any

from storage.domain.audit import AuditEntry
from storage.domain.keys import Principal
from storage.domain.paging import Page, PageRequest, page_of, plan_page
from storage.engine.catalog import Connection
from storage.engine.rows.audit import insert_audit_entry, select_audit_entries
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


def record_operator_audit(
    connection: Connection,
    store: Store,
    *,
    workspace_id: int,
    action: str,
    kind: str,
    entity_id: object,
    details: dict[str, Any],
) -> None:
    """Add an entry of what the operator did where no user is there yet."""
    insert_audit_entry(
        connection,
        workspace_id=workspace_id,
        user_id=None,
        action=action,
        kind=kind,
        entity_id=str(entity_id),
        details=details,
        created_at=store.now(),
    )


def list_audit(
    store: Store,
    who: Principal,
    *,
    request: PageRequest,
    kind: str | None = None,
    action: str | None = None,
    entity_id: str | None = None,
) -> Page[AuditEntry]:
    """List the workspace's audit entries by age.

    Raises:
        InvalidCursor: the cursor is of another list.
    """
    filters = {
        "workspace": who.workspace_id,
        "list": "audit",
        "kind": kind,
        "action": action,
        "entity_id": entity_id,
    }
    window = plan_page(store.cursor_key, request, sort="id", filters=filters)
    with store.catalog.read() as connection:
        found = select_audit_entries(
            connection,
            who.workspace_id,
            kind=kind,
            action=action,
            entity_id=entity_id,
            after=window.position,
            descending=window.descending,
            limit=window.limit,
        )
    return page_of(store.cursor_key, window, found, lambda entry: entry.id)
