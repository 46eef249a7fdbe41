"""Datasets: versions and drafts of groups, and the tables that keep their rows out of sight."""

import sqlalchemy as sa
from alembic import op

from storage.engine.schema import metadata
from storage.engine.schema_parts import INTEGER

revision = "0010_datasets"
down_revision = "0009_sheet_upkeep"
branch_labels = None
depends_on = None

_TABLES = ("datasets", "dataset_links")
_COLUMNS = (
    ("tables", lambda: sa.Column("hidden", sa.Boolean, nullable=False, server_default=sa.false())),
    ("dataset_groups", lambda: sa.Column("sheet_no", INTEGER)),
    ("reports", lambda: sa.Column("dataset_id", INTEGER)),
)


def upgrade() -> None:
    bind = op.get_bind()
    # a home made by this release has them from its first revision on
    for table, column in _COLUMNS:
        if column().name not in {one["name"] for one in sa.inspect(bind).get_columns(table)}:
            op.add_column(table, column())
    for name in _TABLES:
        metadata.tables[name].create(bind, checkfirst=True)


def downgrade() -> None:
    bind = op.get_bind()
    for name in reversed(_TABLES):
        metadata.tables[name].drop(bind, checkfirst=True)
    for table, column in _COLUMNS:
        op.drop_column(table, column().name)
