"""Webhooks: who is told of which events; what an event and its delivery are."""

import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Literal, get_args
from uuid import UUID

EventType = Literal[
    "dataset_version_created_by_file",
    "dataset_version_created_by_file_failed",
    "table_sheet_created_from_file",
    "table_sheet_created_from_file_failed",
    "table_sheet_created_from_request_history",
    "table_sheet_created_from_request_history_failed",
    "report_finished",
    "prompt_template_version_created",
    "prompt_template_label_created",
    "prompt_template_label_moved",
    "prompt_template_label_deleted",
]
EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)

DeliveryStatus = Literal["pending", "delivered", "dead"]
PENDING: DeliveryStatus = "pending"
DELIVERED: DeliveryStatus = "delivered"
DEAD: DeliveryStatus = "dead"

MAX_WEBHOOKS = 100
ATTEMPT_S = 10.0
AT_ONCE = 8
KEPT_BYTES = 65_536
GIVE_UP_AFTER = timedelta(days=1)
# An attempt whose process died is made again when this is over; it must outlast any attempt.
LEASE = timedelta(seconds=20)
_LONGEST_WAIT_S = 3600.0
_MAX_ERROR = 500


@dataclass(frozen=True, slots=True)
class Webhook:
    """A target and the events that it is told; its secret is shown once and kept apart."""

    id: int
    workspace_id: int
    user_id: int
    url: str
    event_types: tuple[EventType, ...]
    previous_secret_until: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to one object; `details` hold ids and names, never content."""

    id: UUID
    workspace_id: int
    user_id: int
    event_type: EventType
    details: Mapping[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event on its way to one webhook, and how its last attempt went."""

    id: int
    webhook_id: int
    event: Event
    status: DeliveryStatus
    redelivery_of: int | None
    attempts: int
    due_at: datetime | None
    give_up_at: datetime
    claimed_at: datetime | None
    last_attempt_at: datetime | None
    response_status: int | None
    response_body: bytes | None
    error: str | None
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Secrets:
    """What signs: the secret, and the one before it while receivers change over."""

    current: str = field(repr=False)
    previous: str | None = field(repr=False, default=None)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that one attempt has to itself until its lease ends."""

    id: int
    webhook_id: int
    attempt: int
    url: str
    event: Event
    secrets: Secrets
    give_up_at: datetime


@dataclass(frozen=True, slots=True)
class Attempted:
    """What came of an attempt: an answer (`status`, its first bytes) or an error in words."""

    status: int | None = None
    answer: bytes = b""
    error: str | None = None
    retry_after_s: float = 0.0

    @property
    def delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004


def event_body(event: Event) -> bytes:
    """The bytes that are sent and signed: JSON with sorted keys, the same at every attempt.

    Separators and escapes are those of Python's `json.dumps`: existing receivers spell the body anew that
    way to verify it.
    """
    stamp = event.created_at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    body = {
        "event_type": event.event_type,
        "details": dict(event.details),
        "workspace_id": event.workspace_id,
        "user_id": event.user_id,
        "timestamp": stamp,
    }
    return json.dumps(body, sort_keys=True).encode()


def sign(secret: str, body: bytes) -> str:
    """HMAC-SHA256 over the body, in hexadecimal."""
    return hmac.new(secret.encode(), body, sha256).hexdigest()


def headers_of(claimed: Claimed, body: bytes) -> dict[str, str]:
    """The headers of a delivery; ids let a receiver tell repeats of one event."""
    signature = sign(claimed.secrets.current, body)
    headers = {
        "Content-Type": "application/json",
        "X-Webhook-Signature": signature,
        "X-PromptLayer-Signature": signature,
        "X-Webhook-Event-Id": str(claimed.event.id),
        "X-Webhook-Delivery-Id": str(claimed.id),
        "X-Webhook-Attempt": str(claimed.attempt),
    }
    if claimed.secrets.previous is not None:
        headers["X-Webhook-Signature-Previous"] = sign(claimed.secrets.previous, body)
    return headers


def plan_retry(
    attempt: int, now: datetime, give_up_at: datetime, *, chance: float, retry_after_s: float = 0.0
) -> datetime | None:
    """Say when to try again after an attempt (from 1) failed; None when the day is over.

    Waits double from a second to an hour; `chance` (0..1) takes off up to half, so that those who failed
    together do not come back together.
    """
    longest = min(_LONGEST_WAIT_S, 2.0 ** min(attempt - 1, 20))
    wait_s = max(longest * (0.5 + 0.5 * chance), min(retry_after_s, _LONGEST_WAIT_S))
    due_at = now + timedelta(seconds=wait_s)
    return due_at if due_at <= give_up_at else None


def describe_failure(attempted: Attempted) -> str | None:
    """One sentence about a failed attempt; None for one that delivered."""
    if attempted.delivered:
        return None
    if attempted.status is None:
        return (attempted.error or "no answer")[:_MAX_ERROR]
    if 300 <= attempted.status < 400:  # noqa: PLR2004
        return f"answered {attempted.status}: redirects are not followed"
    return f"answered {attempted.status}"


def known_event_types(wanted: Iterable[EventType]) -> tuple[EventType, ...]:
    """The event types in their usual order, each once."""
    chosen = set(wanted)
    return tuple(name for name in EVENT_TYPES if name in chosen)
