"""Deliveries of a webhook: listed, shown, sent again by hand."""

from storage.audit import record_audit
from storage.domain.errors import Conflict, NotFound
from storage.domain.keys import Principal
from storage.domain.paging import Page, PageRequest, page_of, plan_page
from storage.domain.webhooks import GIVE_UP_AFTER, Delivery, DeliveryStatus, EventType
from storage.engine.catalog import Connection
from storage.engine.rows.deliveries import (
    find_delivery,
    find_event_of,
    hasten,
    insert_delivery,
    select_deliveries,
)
from storage.store import Store
from storage.webhooks import require_webhook

KIND = "delivery"


def list_deliveries(
    store: Store,
    who: Principal,
    webhook_id: int,
    *,
    request: PageRequest,
    status: DeliveryStatus | None = None,
    event_type: EventType | None = None,
) -> Page[Delivery]:
    """List the deliveries of a webhook by age, without what was answered.

    Raises:
        NotFound: no such webhook.
        InvalidCursor: the cursor is of another list.
    """
    filters = {"webhook": webhook_id, "status": status, "event_type": event_type}
    window = plan_page(store.cursor_key, request, sort="id", filters=filters)
    with store.catalog.read() as connection:
        require_webhook(connection, who, webhook_id)
        found = select_deliveries(
            connection,
            webhook_id,
            status=status,
            event_type=event_type,
            after=window.position,
            descending=window.descending,
            limit=window.limit,
        )
    return page_of(store.cursor_key, window, found, lambda delivery: delivery.id)


def get_delivery(store: Store, who: Principal, webhook_id: int, delivery_id: int) -> Delivery:
    """Return a delivery with what was answered last.

    Raises:
        NotFound: no such delivery of that webhook.
    """
    with store.catalog.read() as connection:
        return _require_delivery(connection, who, webhook_id, delivery_id)


def _require_delivery(connection: Connection, who: Principal, webhook_id: int, delivery_id: int) -> Delivery:
    require_webhook(connection, who, webhook_id)
    found = find_delivery(connection, webhook_id, delivery_id)
    if found is None:
        raise NotFound("No such delivery")
    return found


def redeliver(store: Store, who: Principal, webhook_id: int, delivery_id: int) -> Delivery:
    """Send an event again, as a new delivery; one that waits for its next attempt is tried now instead.

    Raises:
        NotFound: no such delivery.
        Conflict: it is being tried now, or waits behind an earlier one of the same object.
    """
    now = store.now()
    with store.catalog.transaction() as connection:
        old = _require_delivery(connection, who, webhook_id, delivery_id)
        new_id = old.id
        if old.ended_at is not None:
            event_no, object_key = find_event_of(connection, old.id)
            new_id = insert_delivery(
                connection,
                webhook_id=webhook_id,
                event_no=event_no,
                object_key=object_key,
                now=now,
                give_up_at=now + GIVE_UP_AFTER,
                redelivery_of=old.id,
            )
        elif not hasten(connection, old.id, now):
            raise Conflict("The delivery is being tried now, or waits behind an earlier one of its object")
        record_audit(connection, store, who, action="redeliver", kind=KIND, entity_id=old.id)
        return _require_delivery(connection, who, webhook_id, new_id)
