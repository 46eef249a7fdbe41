"""Webhooks: made, listed, rotated, deleted; their deliveries shown and sent again."""

from datetime import timedelta
from typing import Annotated

from fastapi import Query

from api.deps import OpenStore, Who
from api.openapi import errors
from api.paths import delivery_path, webhook_path
from api.routing import guarded_router, needs
from api.schemas.base import check_workspace_id
from api.schemas.pages import Cursor, Limit, Order, PageOut, page_out
from api.schemas.tables import Done
from api.schemas.webhooks import (
    DeliveryAnswer,
    DeliveryDetail,
    DeliveryOut,
    SecretRotate,
    WebhookAnswer,
    WebhookCreate,
    WebhookOut,
    WebhookWithSecret,
)
from storage import deliveries, webhooks
from storage.domain.errors import Conflict, InvalidCursor
from storage.domain.paging import PageRequest
from storage.domain.webhooks import DeliveryStatus, EventType

router = guarded_router(prefix="/api/public/v2/webhooks", tags=["webhooks"])


@router.post("", status_code=201, summary="Create a webhook", responses=errors(Conflict))
@needs("admin")
def create_webhook(store: OpenStore, who: Who, body: WebhookCreate) -> WebhookWithSecret:
    """Events of these types are posted to the URL from now on.

    The answer alone shows the secret. Each delivery carries `X-Webhook-Signature` (and the same value as
    `X-PromptLayer-Signature`): the hexadecimal HMAC-SHA256 of the body's exact bytes under the secret.
    Private, loopback and link-local targets are refused unless the operator allows them.
    """
    check_workspace_id(who, body.workspace_id)
    webhook, secret = webhooks.create_webhook(store, who, url=body.url, event_types=body.event_types)
    return WebhookWithSecret.with_secret(webhook, secret, "Webhook created; the secret is shown only now")


@router.get("", summary="List webhooks", responses=errors(InvalidCursor))
@needs("admin")
def list_webhooks(
    store: OpenStore, who: Who, cursor: Cursor = None, limit: Limit = 20, order: Order = "desc"
) -> PageOut[WebhookOut]:
    """List the workspace's webhooks by age; their secrets are never shown again."""
    page = webhooks.list_webhooks(store, who, request=PageRequest(limit, order, cursor))
    return page_out(page, WebhookOut.of)


@router.get("/{webhook_id}", summary="Get a webhook")
@needs("admin", path=webhook_path)
def get_webhook(store: OpenStore, who: Who, webhook_id: int) -> WebhookAnswer:
    return WebhookAnswer(webhook=WebhookOut.of(webhooks.get_webhook(store, who, webhook_id)))


@router.delete("/{webhook_id}", summary="Delete a webhook")
@needs("admin", path=webhook_path)
def delete_webhook(store: OpenStore, who: Who, webhook_id: int) -> Done:
    """Nothing more is sent, also of what is on its way."""
    webhooks.delete_webhook(store, who, webhook_id)
    return Done(message="Webhook deleted")


@router.post("/{webhook_id}/rotate-secret", summary="Replace a webhook's secret")
@needs("admin", path=webhook_path)
def rotate_secret(
    store: OpenStore, who: Who, webhook_id: int, body: SecretRotate | None = None
) -> WebhookWithSecret:
    """Deliveries are signed with the new secret at once.

    Until the overlap ends they carry `X-Webhook-Signature-Previous` as well, by the old secret: a receiver
    that accepts either header accepts every delivery, whichever secret it has.
    """
    overlap = timedelta(hours=(body or SecretRotate()).overlap_hours)
    webhook, secret = webhooks.rotate_secret(store, who, webhook_id, overlap=overlap)
    return WebhookWithSecret.with_secret(webhook, secret, "Secret replaced; the new one is shown only now")


@router.get(
    "/{webhook_id}/deliveries", summary="List a webhook's deliveries", responses=errors(InvalidCursor)
)
@needs("admin", path=webhook_path)
def list_deliveries(
    store: OpenStore,
    who: Who,
    webhook_id: int,
    status: Annotated[DeliveryStatus | None, Query()] = None,
    event_type: Annotated[EventType | None, Query()] = None,
    cursor: Cursor = None,
    limit: Limit = 20,
    order: Order = "desc",
) -> PageOut[DeliveryOut]:
    """List deliveries by age. One that has failed for a day is `dead`."""
    page = deliveries.list_deliveries(
        store,
        who,
        webhook_id,
        request=PageRequest(limit, order, cursor),
        status=status,
        event_type=event_type,
    )
    return page_out(page, DeliveryOut.of, status=status, event_type=event_type)


@router.get("/{webhook_id}/deliveries/{delivery_id}", summary="Get a delivery")
@needs("admin", path=delivery_path)
def get_delivery(store: OpenStore, who: Who, webhook_id: int, delivery_id: int) -> DeliveryAnswer:
    """Return a delivery with what is sent and what was answered last."""
    found = deliveries.get_delivery(store, who, webhook_id, delivery_id)
    return DeliveryAnswer(delivery=DeliveryDetail.of(found))


@router.post(
    "/{webhook_id}/deliveries/{delivery_id}/redeliver",
    status_code=201,
    summary="Send an event again",
    responses=errors(Conflict),
)
@needs("admin", path=delivery_path)
def redeliver(store: OpenStore, who: Who, webhook_id: int, delivery_id: int) -> DeliveryAnswer:
    """A delivery that ended is sent again as a new one; one that waits for its next attempt is tried now."""
    return DeliveryAnswer(
        delivery=DeliveryDetail.of(deliveries.redeliver(store, who, webhook_id, delivery_id))
    )
