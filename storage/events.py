"""Events: recorded in the transaction of what happened, with one delivery for each webhook that asked."""

from collections.abc import Mapping
from typing import Any

from storage.domain.webhooks import GIVE_UP_AFTER, EventType
from storage.engine.catalog import Connection
from storage.engine.rows.deliveries import insert_delivery, insert_event
from storage.engine.rows.webhooks import select_webhooks
from storage.store import Store


def record_event(
    connection: Connection,
    store: Store,
    *,
    workspace_id: int,
    user_id: int,
    event_type: EventType,
    object_key: str,
    details: Mapping[str, Any],
) -> int:
    """Record an event and put its deliveries into the outbox; return how many.

    An event that no webhook asked for leaves no row. Deliveries of one `object_key` (such as `prompt:12`)
    leave in the order in which their events were recorded. `details` hold ids and names, never content.
    """
    asked = [hook.id for hook in select_webhooks(connection, workspace_id) if event_type in hook.event_types]
    if not asked:
        return 0
    now = store.now()
    event_no = insert_event(
        connection,
        {
            "id": store.new_id(),
            "workspace_id": workspace_id,
            "user_id": user_id,
            "event_type": event_type,
            "object_key": object_key,
            "details": dict(details),
            "created_at": now,
        },
    )
    for webhook_id in asked:
        insert_delivery(
            connection,
            webhook_id=webhook_id,
            event_no=event_no,
            object_key=object_key,
            now=now,
            give_up_at=now + GIVE_UP_AFTER,
        )
    return len(asked)
