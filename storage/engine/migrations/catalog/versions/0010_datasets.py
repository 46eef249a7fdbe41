"""Datasets: versions and drafts of groups, and the tables that keep their rows out of sight."""

import sqlalchemy as sa
from alembic import op

from storage.engine.schema import metadata

revision = "0010_datasets"
down_revision = "0009_sheet_upkeep"
branch_labels = None
depends_on = None

_TABLES = ("datasets", "dataset_links")
_COLUMNS = (("tables", "hidden"), ("dataset_groups", "sheet_no"), ("reports", "dataset_id"))


def upgrade() -> None:
    bind = op.get_bind()
    # a home made by this release has them from its first revision on
    for table, name in _COLUMNS:
        if name not in {column["name"] for column in sa.inspect(bind).get_columns(table)}:
            op.add_column(table, metadata.tables[table].c[name].copy())
    for name in _TABLES:
        metadata.tables[name].create(bind, checkfirst=True)


def downgrade() -> None:
    bind = op.get_bind()
    for name in reversed(_TABLES):
        metadata.tables[name].drop(bind, checkfirst=True)
    for table, name in _COLUMNS:
        op.drop_column(table, name)
