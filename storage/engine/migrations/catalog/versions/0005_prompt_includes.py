"""Which prompt versions include which snippets."""

from alembic import op

from storage.engine.schema import prompt_includes

revision = "0005_prompt_includes"
down_revision = "0004_folder_contents"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # the first release makes every table that this release knows
    prompt_includes.create(op.get_bind(), checkfirst=True)


def downgrade() -> None:
    prompt_includes.drop(op.get_bind())
