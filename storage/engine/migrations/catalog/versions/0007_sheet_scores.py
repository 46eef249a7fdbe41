"""How sheets are scored, and the scores of their versions."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007_sheet_scores"
down_revision = "0006_suggestion_calls"
branch_labels = None
depends_on = None


def _added() -> dict[str, list["sa.Column[Any]"]]:
    return {
        "sheets": [sa.Column("score_configuration", sa.JSON, nullable=False, server_default="{}")],
        "sheet_versions": [
            sa.Column("score", sa.JSON, nullable=False, server_default="{}"),
            sa.Column("score_snapshot_no", sa.BigInteger),
            sa.Column("score_configuration", sa.JSON, nullable=False, server_default="{}"),
        ],
    }


def upgrade() -> None:
    known = sa.inspect(op.get_bind())
    for table, columns in _added().items():
        # a catalog made by this release has all of it from the start
        there = {column["name"] for column in known.get_columns(table)}
        for column in columns:
            if column.name not in there:
                op.add_column(table, column)


def downgrade() -> None:
    for table, columns in _added().items():
        for column in columns:
            op.drop_column(table, column.name)
