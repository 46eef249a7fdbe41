"""Segments say since when nothing names them; snapshots are found by who names them."""

import sqlalchemy as sa
from alembic import op

from storage.engine.schema import segments, sheet_versions, sheets

revision = "0009_sheet_upkeep"
down_revision = "0008_recalculations"
branch_labels = None
depends_on = None


def upgrade() -> None:
    bind = op.get_bind()
    # a catalog made by this release has all of it from the start
    if "unnamed_at" not in {column["name"] for column in sa.inspect(bind).get_columns("segments")}:
        op.add_column("segments", sa.Column("unnamed_at", segments.c.unnamed_at.type))
    for table in (sheets, sheet_versions):
        for index in table.indexes:
            index.create(bind, checkfirst=True)


def downgrade() -> None:
    op.drop_column("segments", "unnamed_at")
