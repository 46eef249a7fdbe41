"""Patches of logged requests, groups of requests."""

import sqlalchemy as sa
from alembic import op

from storage.engine.log_schema import log_groups, log_patches

revision = "0002_log_patches"
down_revision = "0001_first_release"
branch_labels = None
depends_on = None

_COLUMNS = (("log_state", "patch_change"), ("log_views", "patches_through"))


def upgrade() -> None:
    # a database that is made now has them from its first revision on
    connection = op.get_bind()
    for table in (log_patches, log_groups):
        table.create(connection, checkfirst=True)
    for table_name, name in _COLUMNS:
        if name not in {column["name"] for column in sa.inspect(connection).get_columns(table_name)}:
            column: sa.Column[int] = sa.Column(name, sa.BigInteger, nullable=False, server_default="0")
            op.add_column(table_name, column)


def downgrade() -> None:
    for table_name, name in _COLUMNS:
        op.drop_column(table_name, name)
    for table in (log_groups, log_patches):
        table.drop(op.get_bind())
