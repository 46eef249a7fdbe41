"""Datasets by group, so that a list by name counts without a walk over all of them."""

from alembic import op

from storage.engine.registry_schema import DATASETS_OF_GROUP

revision = "0014_datasets_of_group"
down_revision = "0013_recalculation_tasks"
branch_labels = None
depends_on = None


def upgrade() -> None:
    DATASETS_OF_GROUP.create(op.get_bind(), checkfirst=True)


def downgrade() -> None:
    DATASETS_OF_GROUP.drop(op.get_bind())
