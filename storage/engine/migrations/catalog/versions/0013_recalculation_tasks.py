"""How far each column of a recalculation is, one row a column."""

from alembic import op

from storage.engine.recalculation_schema import recalculation_tasks

revision = "0013_recalculation_tasks"
down_revision = "0012_model_results"
branch_labels = None
depends_on = None


def upgrade() -> None:
    recalculation_tasks.create(op.get_bind(), checkfirst=True)


def downgrade() -> None:
    recalculation_tasks.drop(op.get_bind())
