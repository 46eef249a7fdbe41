"""What computed columns read: kept with each column, and as a graph."""

import sqlalchemy as sa
from alembic import op

from storage.engine.schema import metadata

revision = "0003_column_dependencies"
down_revision = "0002_sheet_overlay"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    # a catalog made by this release has all of it from the start
    if "dependencies" not in {column["name"] for column in sa.inspect(connection).get_columns("columns")}:
        added = sa.Column("dependencies", sa.JSON, nullable=False, server_default="[]")
        op.add_column("columns", added)
    metadata.tables["column_edges"].create(connection, checkfirst=True)


def downgrade() -> None:
    op.drop_table("column_edges")
    op.drop_column("columns", "dependencies")
