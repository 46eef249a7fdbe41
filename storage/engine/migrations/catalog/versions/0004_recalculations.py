"""Recalculations: what they are to do and have done, and answers kept for a run that goes on."""

from alembic import op

from storage.engine.schema import column_prints, kept_answers, recalculations

revision = "0004_recalculations"
down_revision = "0003_column_dependencies"
branch_labels = None
depends_on = None

_TABLES = (recalculations, kept_answers, column_prints)


def upgrade() -> None:
    for table in _TABLES:
        table.create(op.get_bind(), checkfirst=True)


def downgrade() -> None:
    for table in reversed(_TABLES):
        table.drop(op.get_bind())
