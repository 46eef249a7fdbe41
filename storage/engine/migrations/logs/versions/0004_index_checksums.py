"""Checksums of what is made from segments."""

import sqlalchemy as sa
from alembic import op

from storage.engine.log_schema import log_companions

revision = "0004_index_checksums"
down_revision = "0003_compaction"
branch_labels = None
depends_on = None

_TABLE, _COLUMN = log_companions.name, "sha256"


def upgrade() -> None:
    # a database made by this release has it from its first revision on
    there = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(_TABLE)}
    if _COLUMN not in there:
        op.add_column(_TABLE, sa.Column(_COLUMN, sa.String(64)))


def downgrade() -> None:
    op.drop_column(_TABLE, _COLUMN)
