"""Reports: their columns, and what keeps the rows of their runs."""

import sqlalchemy as sa
from alembic import op

from storage.engine.schema import metadata
from storage.engine.schema_parts import INTEGER

revision = "0011_reports"
down_revision = "0010_datasets"
branch_labels = None
depends_on = None

_COLUMNS = (
    lambda: sa.Column("columns", sa.JSON, nullable=False, server_default="[]"),
    lambda: sa.Column("sheet_no", INTEGER),
    lambda: sa.Column("operation_no", INTEGER),
)


def upgrade() -> None:
    bind = op.get_bind()
    reports = metadata.tables["reports"]
    # a home made by this release has them from its first revision on
    there = {column["name"] for column in sa.inspect(bind).get_columns("reports")}
    for column in _COLUMNS:
        if column().name not in there:
            op.add_column("reports", column())
    for index in reports.indexes:
        index.create(bind, checkfirst=True)


def downgrade() -> None:
    op.drop_index("ix_reports_sheet_no", "reports")
    for column in _COLUMNS:
        op.drop_column("reports", column().name)
