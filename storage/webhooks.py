"""Webhooks: made with a secret that is shown once, rotated with overlap, deleted."""

import secrets
from collections.abc import Iterable
from datetime import timedelta

from storage.audit import record_audit
from storage.domain.errors import Conflict, NotFound
from storage.domain.keys import Principal
from storage.domain.paging import Page, PageRequest, page_of, plan_page
from storage.domain.webhooks import MAX_WEBHOOKS, EventType, Webhook, known_event_types
from storage.engine.catalog import Connection
from storage.engine.rows.deliveries import end_deliveries
from storage.engine.rows.webhooks import (
    find_webhook,
    insert_webhook,
    mark_webhook_deleted,
    replace_secret,
    select_webhooks,
)
from storage.store import Store
from storage.targets import check_url

KIND = "webhook"


def create_webhook(
    store: Store, who: Principal, *, url: str, event_types: Iterable[EventType]
) -> tuple[Webhook, str]:
    """Make a webhook; return it with its secret, which is never shown again.

    Raises:
        Invalid: the URL is none, or leads to a private address that the operator does not allow.
        Conflict: the workspace has as many as it may.
    """
    check_url(store.settings, url)
    secret = _new_secret()
    with store.catalog.transaction() as connection:
        if len(select_webhooks(connection, who.workspace_id)) >= MAX_WEBHOOKS:
            raise Conflict(f"A workspace has at most {MAX_WEBHOOKS} webhooks")
        values = {
            "workspace_id": who.workspace_id,
            "user_id": who.user_id,
            "url": url,
            "event_types": known_event_types(event_types),
            "secret": secret,
            "created_at": store.now(),
        }
        webhook_id = insert_webhook(connection, values)
        record_audit(connection, store, who, action="create", kind=KIND, entity_id=webhook_id)
        return require_webhook(connection, who, webhook_id), secret


def _new_secret() -> str:
    return f"whsec_{secrets.token_hex(32)}"


def get_webhook(store: Store, who: Principal, webhook_id: int) -> Webhook:
    """Return a webhook.

    Raises:
        NotFound: no such webhook in the workspace.
    """
    with store.catalog.read() as connection:
        return require_webhook(connection, who, webhook_id)


def require_webhook(connection: Connection, who: Principal, webhook_id: int) -> Webhook:
    """As `get_webhook`, within a transaction of the caller."""
    found = find_webhook(connection, who.workspace_id, webhook_id)
    if found is None:
        raise NotFound("No such webhook")
    return found


def list_webhooks(store: Store, who: Principal, *, request: PageRequest) -> Page[Webhook]:
    """List the workspace's webhooks by age.

    Raises:
        InvalidCursor: the cursor is of another list.
    """
    filters = {"workspace": who.workspace_id, "list": KIND}
    window = plan_page(store.cursor_key, request, sort="id", filters=filters)
    with store.catalog.read() as connection:
        found = select_webhooks(
            connection,
            who.workspace_id,
            after=window.position,
            descending=window.descending,
            limit=window.limit,
        )
    return page_of(store.cursor_key, window, found, lambda webhook: webhook.id)


def rotate_secret(
    store: Store, who: Principal, webhook_id: int, *, overlap: timedelta
) -> tuple[Webhook, str]:
    """Sign with a new secret, which is returned once; the old one signs as well until the overlap ends.

    Raises:
        NotFound: no such webhook.
    """
    secret = _new_secret()
    with store.catalog.transaction() as connection:
        require_webhook(connection, who, webhook_id)
        replace_secret(connection, webhook_id, secret, store.now() + overlap)
        record_audit(connection, store, who, action="rotate", kind=KIND, entity_id=webhook_id)
        return require_webhook(connection, who, webhook_id), secret


def delete_webhook(store: Store, who: Principal, webhook_id: int) -> None:
    """Delete a webhook; what is on its way is given up, and its secrets are forgotten.

    Raises:
        NotFound: no such webhook.
    """
    now = store.now()
    with store.catalog.transaction() as connection:
        require_webhook(connection, who, webhook_id)
        end_deliveries(connection, webhook_id, now, "webhook deleted")
        mark_webhook_deleted(connection, webhook_id, now)
        record_audit(connection, store, who, action="delete", kind=KIND, entity_id=webhook_id)
