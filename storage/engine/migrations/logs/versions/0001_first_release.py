"""The schema of the first release."""

from alembic import op

from storage.engine.log_schema import log_metadata as metadata

revision = "0001_first_release"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    metadata.create_all(op.get_bind())


def downgrade() -> None:
    metadata.drop_all(op.get_bind())
