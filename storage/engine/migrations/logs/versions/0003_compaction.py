"""Compaction, deletion and retention of logs; what is made from segments."""

import sqlalchemy as sa
from alembic import op

from storage.engine.log_schema import (
    log_companions,
    log_deletions,
    log_keeping,
    log_manifests,
    log_retired,
    log_segments,
    log_views,
)

revision = "0003_compaction"
down_revision = "0002_log_patches"
branch_labels = None
depends_on = None

_TABLES = (log_companions, log_deletions, log_keeping, log_manifests, log_retired)
_COLUMNS = ((log_segments, ("from_us", "to_us")), (log_views, ("change",)))


def upgrade() -> None:
    connection = op.get_bind()
    for table in _TABLES:
        table.create(connection, checkfirst=True)
    # a database made by this release has them from its first revision on
    for table, names in _COLUMNS:
        there = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
        for name in names:
            if name not in there:
                of = table.c[name]
                default = "0" if of.server_default is not None else None
                added: sa.Column[int] = sa.Column(name, of.type, nullable=of.nullable, server_default=default)
                op.add_column(table.name, added)


def downgrade() -> None:
    connection = op.get_bind()
    for table in _TABLES:
        table.drop(connection, checkfirst=True)
    for table, names in _COLUMNS:
        for name in names:
            op.drop_column(table.name, name)
