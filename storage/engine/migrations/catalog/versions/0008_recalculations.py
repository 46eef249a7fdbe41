"""Recalculations: what they are to do and have done, and answers kept for a run that goes on."""

from alembic import op

from storage.engine.recalculation_schema import column_prints, kept_answers, recalculations, stale_marks

revision = "0008_recalculations"
down_revision = "0007_sheet_scores"
branch_labels = None
depends_on = None

_TABLES = (recalculations, kept_answers, stale_marks, column_prints)


def upgrade() -> None:
    for table in _TABLES:
        table.create(op.get_bind(), checkfirst=True)


def downgrade() -> None:
    for table in reversed(_TABLES):
        table.drop(op.get_bind())
