"""Calls for suggestions, which a limit counts."""

from alembic import op

from storage.engine.schema import suggestion_calls

revision = "0006_suggestion_calls"
down_revision = "0005_prompt_includes"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # the first release makes every table that this release knows
    suggestion_calls.create(op.get_bind(), checkfirst=True)


def downgrade() -> None:
    suggestion_calls.drop(op.get_bind())
