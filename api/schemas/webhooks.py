"""Wire shapes of webhooks and their deliveries."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from api.schemas.base import Answer, Body, WireInt, example
from storage.domain.targets import MAX_URL
from storage.domain.webhooks import EVENT_TYPES, Delivery, DeliveryStatus, EventType, Webhook, event_body

_MAX_OVERLAP_HOURS = 168


class WebhookCreate(Body):
    model_config = example(
        {
            "url": "https://hooks.example.com/promptlake",
            "event_types": ["prompt_template_version_created", "prompt_template_label_moved"],
        }
    )

    url: Annotated[str, StringConstraints(min_length=1, max_length=MAX_URL)]
    event_types: Annotated[list[EventType], Field(min_length=1, max_length=len(EVENT_TYPES))]
    workspace_id: WireInt | None = None


class SecretRotate(Body):
    model_config = example({"overlap_hours": 24})

    overlap_hours: Annotated[
        float,
        Field(
            ge=0,
            le=_MAX_OVERLAP_HOURS,
            description="How long the old secret signs as well, in `X-Webhook-Signature-Previous`.",
        ),
    ] = 24.0


class WebhookOut(Answer):
    id: int
    workspace_id: int
    user_id: int
    url: str
    event_types: list[EventType]
    previous_secret_until: datetime | None
    created_at: datetime

    @classmethod
    def of(cls, webhook: Webhook) -> "WebhookOut":
        return cls(
            id=webhook.id,
            workspace_id=webhook.workspace_id,
            user_id=webhook.user_id,
            url=webhook.url,
            event_types=list(webhook.event_types),
            previous_secret_until=webhook.previous_secret_until,
            created_at=webhook.created_at,
        )


class WebhookAnswer(Answer):
    success: Literal[True] = True
    webhook: WebhookOut


class WebhookWithSecret(WebhookOut):
    """The only answer that carries the secret."""

    success: Literal[True] = True
    message: str
    secret: str

    @classmethod
    def with_secret(cls, webhook: Webhook, secret: str, message: str) -> "WebhookWithSecret":
        return cls(message=message, secret=secret, **WebhookOut.of(webhook).model_dump())


class DeliveryOut(Answer):
    """A delivery; `next_attempt_at` is null where it ended, is being tried, or is not its turn."""

    id: int
    webhook_id: int
    event_id: UUID
    event_type: EventType
    status: DeliveryStatus
    attempts: int
    next_attempt_at: datetime | None
    give_up_at: datetime
    last_attempt_at: datetime | None
    response_status: int | None
    error: str | None
    redelivery_of: int | None
    created_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, delivery: Delivery) -> "DeliveryOut":
        return cls(**_facts(delivery))


class DeliveryDetail(DeliveryOut):
    """With what is sent, and the first 64 KB of what was answered last."""

    request_body: str
    response_body: str | None

    @classmethod
    def of(cls, delivery: Delivery) -> "DeliveryDetail":
        answered = delivery.response_body
        return cls(
            **_facts(delivery),
            request_body=event_body(delivery.event).decode(),
            response_body=None if answered is None else answered.decode(errors="replace"),
        )


class DeliveryAnswer(Answer):
    success: Literal[True] = True
    delivery: DeliveryDetail


def _facts(delivery: Delivery) -> dict[str, Any]:
    return {
        "id": delivery.id,
        "webhook_id": delivery.webhook_id,
        "event_id": delivery.event.id,
        "event_type": delivery.event.event_type,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "next_attempt_at": None if delivery.claimed_at else delivery.due_at,
        "give_up_at": delivery.give_up_at,
        "last_attempt_at": delivery.last_attempt_at,
        "response_status": delivery.response_status,
        "error": delivery.error,
        "redelivery_of": delivery.redelivery_of,
        "created_at": delivery.created_at,
        "ended_at": delivery.ended_at,
    }
