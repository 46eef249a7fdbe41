"""The outbox of webhooks: deliveries claimed for one attempt, ended or tried again, counted and pruned."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from storage.domain.targets import origin_of
from storage.domain.webhooks import (
    AT_ONCE,
    DEAD,
    DELIVERED,
    KEPT_BYTES,
    LEASE,
    PENDING,
    Attempted,
    Claimed,
    Delivery,
    DeliveryStatus,
    describe_failure,
    plan_retry,
)
from storage.engine.catalog import Connection
from storage.engine.rows.deliveries import (
    claim_delivery,
    count_deliveries,
    delete_ended,
    find_next_due,
    let_next,
    rearm,
    select_due,
    select_overdue_count,
    select_webhooks_due,
    update_claimed,
)
from storage.engine.rows.webhooks import select_secrets
from storage.store import Store

OVERDUE_AFTER = timedelta(minutes=1)


@contextmanager
def watching(store: Store) -> Iterator[Callable[[], bool]]:
    """Hand out a question for a block: may anything have come into the outbox since it was asked last?

    Asking takes microseconds and never waits; the first answer is yes.
    """
    with closing(store.catalog.watch()) as watch:
        yield watch.changed


def get_next_due(store: Store) -> datetime | None:
    """Return when the next attempt of all is due; None when nothing is on its way."""
    with store.catalog.read() as connection:
        return find_next_due(connection)


def claim_due(store: Store, *, busy: Mapping[str, int], limit: int) -> list[Claimed]:
    """Take deliveries that are due, each for one attempt within its lease.

    `busy` counts the attempts under way by target (origin): together with them no target gets more than
    `AT_ONCE`. Of one object at most one is ever due, the oldest.
    """
    now = store.now()
    with store.catalog.read() as connection:
        found = _free_to_go(connection, store, Counter(busy), limit)
    if not found:
        return []
    urls = {delivery.id: url for delivery, url in found}
    with store.catalog.transaction() as connection:
        taken = [delivery for delivery, _ in found if claim_delivery(connection, delivery, now, now + LEASE)]
        secrets = select_secrets(connection, sorted({delivery.webhook_id for delivery in taken}), now)
    return [
        Claimed(
            id=delivery.id,
            webhook_id=delivery.webhook_id,
            attempt=delivery.attempts + 1,
            url=urls[delivery.id],
            event=delivery.event,
            secrets=secrets[delivery.webhook_id],
            give_up_at=delivery.give_up_at,
        )
        for delivery in taken
    ]


def _free_to_go(
    connection: Connection, store: Store, busy: Counter[str], limit: int
) -> list[tuple[Delivery, str]]:
    found: list[tuple[Delivery, str]] = []
    for webhook_id, url in select_webhooks_due(connection, store.now()):
        origin = origin_of(url)
        room = min(AT_ONCE - busy[origin], limit - len(found))
        if room > 0:
            due = select_due(connection, webhook_id, store.now(), room)
            busy[origin] += len(due)
            found += [(delivery, url) for delivery in due]
    return found


def finish(store: Store, ended: Sequence[tuple[Claimed, Attempted]]) -> list[DeliveryStatus | None]:
    """Keep what came of attempts, all in one transaction.

    Returns the status of each delivery; None where it was no longer the attempt's, and nothing was kept.
    """
    now = store.now()
    plans = [(claimed, _plan(claimed, attempted, now)) for claimed, attempted in ended]
    with store.catalog.transaction() as connection:
        return [_finish(connection, claimed, values, now) for claimed, values in plans]


def _plan(claimed: Claimed, attempted: Attempted, now: datetime) -> dict[str, Any]:
    due_at = None
    if not attempted.delivered:
        chance = random.random()  # noqa: S311  # spreads load, keeps no secret
        due_at = plan_retry(
            claimed.attempt, now, claimed.give_up_at, chance=chance, retry_after_s=attempted.retry_after_s
        )
    return {
        "last_attempt_at": now,
        "response_status": attempted.status,
        "response_body": attempted.answer[:KEPT_BYTES],
        "error": describe_failure(attempted),
        "status": DELIVERED if attempted.delivered else PENDING if due_at else DEAD,
        "due_at": due_at,
        "ended_at": None if due_at else now,
    }


def _finish(
    connection: Connection, claimed: Claimed, values: dict[str, Any], now: datetime
) -> DeliveryStatus | None:
    if not update_claimed(connection, claimed.id, claimed.attempt, values):
        return None
    if values["ended_at"] is not None:
        let_next(connection, claimed.id, now)
    status: DeliveryStatus = values["status"]
    return status


def release(store: Store, unfinished: Sequence[Claimed]) -> None:
    """Give attempts back that were not finished: they are due at once."""
    with store.catalog.transaction() as connection:
        for claimed in unfinished:
            update_claimed(connection, claimed.id, claimed.attempt, {"due_at": store.now()})


@dataclass(frozen=True, slots=True)
class Outbox:
    """How many deliveries there are; `overdue` ones should have been tried a minute ago."""

    pending: int
    delivered: int
    dead: int
    overdue: int


def count_outbox(store: Store) -> Outbox:
    with store.catalog.read() as connection:
        return Outbox(**count_deliveries(connection, store.now() - OVERDUE_AFTER))


def count_overdue(store: Store) -> int:
    """Count the deliveries that should have been tried a minute ago."""
    with store.catalog.read() as connection:
        return select_overdue_count(connection, store.now() - OVERDUE_AFTER)


def rearm_overdue(store: Store) -> int:
    """Make due every delivery that nothing stands before and that nothing will make due; return how many."""
    with store.catalog.transaction() as connection:
        return rearm(connection, store.now())


def prune_deliveries(store: Store) -> int:
    """Delete deliveries that ended longer ago than the setting keeps them; return how many."""
    with store.catalog.transaction() as connection:
        return delete_ended(connection, store.now() - timedelta(days=store.settings.webhook_days))
