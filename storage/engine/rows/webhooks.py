"""Rows of webhooks; their secrets leave by `select_secrets` alone."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from storage.domain.webhooks import Secrets, Webhook
from storage.engine.catalog import Connection, new_no
from storage.engine.webhook_schema import webhooks

_SHOWN = (
    webhooks.c.id,
    webhooks.c.workspace_id,
    webhooks.c.user_id,
    webhooks.c.url,
    webhooks.c.event_types,
    webhooks.c.previous_secret_until,
    webhooks.c.created_at,
)
_LIVE = webhooks.c.deleted_at.is_(None)


def _webhook(row: Mapping[Any, Any]) -> Webhook:
    return Webhook(**{**row, "event_types": tuple(row["event_types"])})


def insert_webhook(connection: Connection, values: dict[str, Any]) -> int:
    return new_no(connection.execute(webhooks.insert().values(values)))


def find_webhook(connection: Connection, workspace_id: int, webhook_id: int) -> Webhook | None:
    query = sa.select(*_SHOWN).where(
        webhooks.c.workspace_id == workspace_id, webhooks.c.id == webhook_id, _LIVE
    )
    row = connection.execute(query).mappings().first()
    return None if row is None else _webhook(row)


def select_webhooks(
    connection: Connection,
    workspace_id: int,
    *,
    after: int | None = None,
    descending: bool = False,
    limit: int | None = None,
) -> list[Webhook]:
    """Return a workspace's webhooks by age, from beyond an id."""
    query = sa.select(*_SHOWN).where(webhooks.c.workspace_id == workspace_id, _LIVE)
    if after is not None:
        query = query.where(webhooks.c.id < after if descending else webhooks.c.id > after)
    query = query.order_by(webhooks.c.id.desc() if descending else webhooks.c.id).limit(limit)
    return [_webhook(row) for row in connection.execute(query).mappings()]


def replace_secret(connection: Connection, webhook_id: int, secret: str, until: datetime) -> None:
    """Sign with a new secret; the one before it signs as well until a moment."""
    connection.execute(
        webhooks.update()
        .where(webhooks.c.id == webhook_id)
        .values(secret=secret, previous_secret=webhooks.c.secret, previous_secret_until=until)
    )


def mark_webhook_deleted(connection: Connection, webhook_id: int, now: datetime) -> None:
    """Hide a webhook and forget what it signed with."""
    gone = {"deleted_at": now, "secret": "", "previous_secret": None, "previous_secret_until": None}
    connection.execute(webhooks.update().where(webhooks.c.id == webhook_id).values(gone))


def select_secrets(connection: Connection, webhook_ids: list[int], now: datetime) -> dict[int, Secrets]:
    """Return what each webhook signs with now."""
    rows = connection.execute(
        sa.select(
            webhooks.c.id,
            webhooks.c.secret,
            webhooks.c.previous_secret,
            webhooks.c.previous_secret_until,
        ).where(webhooks.c.id.in_(webhook_ids))
    )
    return {
        row.id: Secrets(
            row.secret,
            row.previous_secret
            if row.previous_secret_until is not None and now < row.previous_secret_until
            else None,
        )
        for row in rows
    }
