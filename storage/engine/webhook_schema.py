"""Tables of the catalog: webhooks, events, and the deliveries of these to those."""

import sqlalchemy as sa

from storage.engine.schema_parts import (
    INTEGER,
    NEVER_REUSED,
    id_column,
    metadata,
    no_column,
    time_column,
    workspace_column,
)

webhooks = sa.Table(
    "webhooks",
    metadata,
    id_column(),
    workspace_column(),
    sa.Column("user_id", sa.ForeignKey("users.id"), nullable=False),
    sa.Column("url", sa.String(2048), nullable=False),
    sa.Column("event_types", sa.JSON, nullable=False),
    # kept as they are, for they sign; emptied when the webhook is deleted
    sa.Column("secret", sa.String(128), nullable=False),
    sa.Column("previous_secret", sa.String(128)),
    time_column("previous_secret_until", nullable=True),
    time_column("created_at"),
    time_column("deleted_at", nullable=True),
    sa.Index("ix_webhooks_workspace", "workspace_id", "id"),
    **NEVER_REUSED,
)

events = sa.Table(
    "events",
    metadata,
    no_column(),
    sa.Column("id", sa.Uuid, nullable=False, unique=True),
    workspace_column(),
    sa.Column("user_id", sa.ForeignKey("users.id"), nullable=False),
    sa.Column("event_type", sa.String(64), nullable=False),
    # what it happened to, such as `prompt:12`: deliveries of one object keep their order
    sa.Column("object_key", sa.String(128), nullable=False),
    sa.Column("details", sa.JSON, nullable=False),
    time_column("created_at"),
    **NEVER_REUSED,
)

_UNENDED = sa.text("ended_at IS NULL")

deliveries = sa.Table(
    "deliveries",
    metadata,
    id_column(),
    sa.Column("webhook_id", sa.ForeignKey("webhooks.id"), nullable=False),
    sa.Column("event_no", sa.ForeignKey("events.no"), nullable=False, index=True),
    sa.Column("object_key", sa.String(128), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("redelivery_of", INTEGER),
    sa.Column("attempts", sa.Integer, nullable=False),
    # when to try next; null behind an earlier one of the same object. A claim moves it on by its lease.
    time_column("due_at", nullable=True),
    time_column("give_up_at"),
    # set while an attempt is under way
    time_column("claimed_at", nullable=True),
    time_column("last_attempt_at", nullable=True),
    sa.Column("response_status", sa.Integer),
    # the first 64 KB of the last answer
    sa.Column("response_body", sa.LargeBinary),
    sa.Column("error", sa.String(500)),
    time_column("created_at"),
    time_column("ended_at", nullable=True),
    sa.Index("ix_deliveries_webhook", "webhook_id", "id"),
    sa.Index("ix_deliveries_due", "due_at", sqlite_where=_UNENDED),
    sa.Index("ix_deliveries_webhook_due", "webhook_id", "due_at", sqlite_where=_UNENDED),
    sa.Index(
        "ix_deliveries_order",
        "webhook_id",
        "object_key",
        "id",
        sqlite_where=_UNENDED,
    ),
    **NEVER_REUSED,
)
