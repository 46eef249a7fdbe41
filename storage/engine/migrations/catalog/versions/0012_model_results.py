"""Results of model calls, kept for equal computations."""

from alembic import op

from storage.engine.recalculation_schema import model_results

revision = "0012_model_results"
down_revision = "0011_reports"
branch_labels = None
depends_on = None


def upgrade() -> None:
    model_results.create(op.get_bind(), checkfirst=True)


def downgrade() -> None:
    model_results.drop(op.get_bind())
