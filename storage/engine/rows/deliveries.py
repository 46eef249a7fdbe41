"""Rows of events and of their deliveries, the outbox; compare-and-set is the only way that one is taken."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from storage.domain.webhooks import Delivery, Event
from storage.engine.catalog import Connection, new_no
from storage.engine.webhook_schema import deliveries, events, webhooks

_UNENDED = deliveries.c.ended_at.is_(None)
_EVENT = (
    events.c.id.label("event_id"),
    events.c.workspace_id,
    events.c.user_id,
    events.c.event_type,
    events.c.details,
    events.c.created_at.label("event_created_at"),
)
_DELIVERY = tuple(column for column in deliveries.c if column.name not in {"event_no", "object_key"})
_JOINED = sa.select(*_DELIVERY, *_EVENT).join(events, events.c.no == deliveries.c.event_no)


def insert_event(connection: Connection, values: dict[str, Any]) -> int:
    return new_no(connection.execute(events.insert().values(values)))


def insert_delivery(
    connection: Connection,
    *,
    webhook_id: int,
    event_no: int,
    object_key: str,
    now: datetime,
    give_up_at: datetime,
    redelivery_of: int | None = None,
) -> int:
    """Add a delivery: due at once, or behind an earlier one of the same object."""
    waits = find_first_unended(connection, webhook_id, object_key) is not None
    values = {
        "webhook_id": webhook_id,
        "event_no": event_no,
        "object_key": object_key,
        "status": "pending",
        "redelivery_of": redelivery_of,
        "attempts": 0,
        "due_at": None if waits else now,
        "give_up_at": give_up_at,
        "created_at": now,
    }
    return new_no(connection.execute(deliveries.insert().values(values)))


def find_first_unended(connection: Connection, webhook_id: int, object_key: str) -> int | None:
    """Return the delivery of an object that goes first."""
    query = sa.select(sa.func.min(deliveries.c.id)).where(
        deliveries.c.webhook_id == webhook_id, deliveries.c.object_key == object_key, _UNENDED
    )
    return connection.execute(query).scalar()


def find_next_due(connection: Connection) -> datetime | None:
    """Return when the next attempt of all is due: one look into an index."""
    query = sa.select(sa.func.min(deliveries.c.due_at)).where(_UNENDED, deliveries.c.due_at.is_not(None))
    return connection.execute(query).scalar()


def select_webhooks_due(connection: Connection, now: datetime) -> list[tuple[int, str]]:
    """Return the ids and URLs of webhooks that have something due."""
    # One look into an index a webhook, however many deliveries wait.
    due = sa.exists().where(deliveries.c.webhook_id == webhooks.c.id, _UNENDED, deliveries.c.due_at <= now)
    query = sa.select(webhooks.c.id, webhooks.c.url).where(webhooks.c.deleted_at.is_(None), due)
    return [(row.id, row.url) for row in connection.execute(query)]


def select_due(connection: Connection, webhook_id: int, now: datetime, limit: int) -> list[Delivery]:
    """Return what is due to one webhook, the longest due first."""
    query = _JOINED.where(deliveries.c.webhook_id == webhook_id, _UNENDED, deliveries.c.due_at <= now)
    query = query.order_by(deliveries.c.due_at, deliveries.c.id).limit(limit)
    return [_delivery(row) for row in connection.execute(query).mappings()]


def claim_delivery(connection: Connection, delivery: Delivery, now: datetime, until: datetime) -> bool:
    """Take a due delivery for one attempt; False when another has it."""
    mine = (
        (deliveries.c.id == delivery.id)
        & (deliveries.c.attempts == delivery.attempts)
        & (deliveries.c.due_at <= now)
        & _UNENDED
    )
    values = {"attempts": delivery.attempts + 1, "claimed_at": now, "due_at": until}
    return connection.execute(deliveries.update().where(mine).values(values)).rowcount == 1


def update_claimed(connection: Connection, delivery_id: int, attempt: int, values: dict[str, Any]) -> bool:
    """Change a delivery that an attempt still has; False when it ended or was taken over."""
    mine = (deliveries.c.id == delivery_id) & (deliveries.c.attempts == attempt) & _UNENDED
    changed = connection.execute(
        deliveries.update()
        .where(mine, deliveries.c.claimed_at.is_not(None))
        .values(claimed_at=None, **values)
    )
    return changed.rowcount == 1


def let_next(connection: Connection, delivery_id: int, now: datetime) -> None:
    """Make the next delivery of the same webhook and object due."""
    ended = connection.execute(
        sa.select(deliveries.c.webhook_id, deliveries.c.object_key).where(deliveries.c.id == delivery_id)
    ).one()
    following = find_first_unended(connection, ended.webhook_id, ended.object_key)
    if following is not None:
        update = deliveries.update().where(deliveries.c.id == following, deliveries.c.due_at.is_(None))
        connection.execute(update.values(due_at=now))


def find_delivery(connection: Connection, webhook_id: int, delivery_id: int) -> Delivery | None:
    query = _JOINED.where(deliveries.c.webhook_id == webhook_id, deliveries.c.id == delivery_id)
    row = connection.execute(query).mappings().first()
    return None if row is None else _delivery(row)


def find_event_of(connection: Connection, delivery_id: int) -> tuple[int, str]:
    """Return the number and the object of a delivery's event."""
    query = sa.select(deliveries.c.event_no, deliveries.c.object_key).where(deliveries.c.id == delivery_id)
    row = connection.execute(query).one()
    return row.event_no, row.object_key


def hasten(connection: Connection, delivery_id: int, now: datetime) -> bool:
    """Make a delivery due that waits for its next attempt; False when it is being tried, or not its turn."""
    waiting = (
        (deliveries.c.id == delivery_id)
        & _UNENDED
        & deliveries.c.due_at.is_not(None)
        & (deliveries.c.claimed_at.is_(None) | (deliveries.c.due_at <= now))
    )
    return connection.execute(deliveries.update().where(waiting).values(due_at=now)).rowcount == 1


def select_deliveries(
    connection: Connection,
    webhook_id: int,
    *,
    status: str | None,
    event_type: str | None,
    after: int | None,
    descending: bool,
    limit: int,
) -> list[Delivery]:
    """Return deliveries of a webhook by age, from beyond an id; without what was answered."""
    narrow = [column for column in _DELIVERY if column.name != "response_body"]
    query = sa.select(*narrow, sa.null().label("response_body"), *_EVENT)
    query = query.join(events, events.c.no == deliveries.c.event_no)
    query = query.where(deliveries.c.webhook_id == webhook_id)
    if status is not None:
        query = query.where(deliveries.c.status == status)
    if event_type is not None:
        query = query.where(events.c.event_type == event_type)
    if after is not None:
        query = query.where(deliveries.c.id < after if descending else deliveries.c.id > after)
    query = query.order_by(deliveries.c.id.desc() if descending else deliveries.c.id).limit(limit)
    return [_delivery(row) for row in connection.execute(query).mappings()]


def end_deliveries(connection: Connection, webhook_id: int, now: datetime, error: str) -> int:
    """Give up what is on its way to a webhook."""
    values = {"status": "dead", "due_at": None, "claimed_at": None, "ended_at": now, "error": error}
    where = (deliveries.c.webhook_id == webhook_id) & _UNENDED
    return connection.execute(deliveries.update().where(where).values(values)).rowcount


def rearm(connection: Connection, now: datetime) -> int:
    """Make due what nothing stands before and nothing made due; return how many."""
    earlier = deliveries.alias("earlier")
    blocked = sa.exists().where(
        earlier.c.webhook_id == deliveries.c.webhook_id,
        earlier.c.object_key == deliveries.c.object_key,
        earlier.c.ended_at.is_(None),
        earlier.c.id < deliveries.c.id,
    )
    update = deliveries.update().where(_UNENDED, deliveries.c.due_at.is_(None), ~blocked)
    return connection.execute(update.values(due_at=now)).rowcount


def count_deliveries(connection: Connection, overdue_before: datetime) -> Mapping[str, int]:
    """Return how many there are by status, and how many should have been tried before a moment."""
    query = sa.select(deliveries.c.status, sa.func.count()).group_by(deliveries.c.status)
    counts = {"pending": 0, "delivered": 0, "dead": 0} | {
        str(status): int(count) for status, count in connection.execute(query)
    }
    return counts | {"overdue": select_overdue_count(connection, overdue_before)}


def select_overdue_count(connection: Connection, overdue_before: datetime) -> int:
    """Return how many should have been tried before a moment."""
    query = sa.select(sa.func.count()).where(_UNENDED, deliveries.c.due_at < overdue_before)
    return connection.execute(query).scalar_one()


def delete_ended(connection: Connection, before: datetime) -> int:
    """Delete deliveries that ended before a moment, and events that none is left of."""
    where = deliveries.c.ended_at < before
    deleted = connection.execute(deliveries.delete().where(where)).rowcount
    kept = sa.exists().where(deliveries.c.event_no == events.c.no)
    connection.execute(events.delete().where(events.c.created_at < before, ~kept))
    return deleted


def _delivery(row: Mapping[Any, Any]) -> Delivery:
    event = Event(
        id=row["event_id"],
        workspace_id=row["workspace_id"],
        user_id=row["user_id"],
        event_type=row["event_type"],
        details=row["details"],
        created_at=row["event_created_at"],
    )
    own = {name: row[name] for name in Delivery.__slots__ if name != "event"}
    return Delivery(event=event, **own)
