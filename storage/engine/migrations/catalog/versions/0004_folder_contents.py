"""Workflows, AB tests, input variable sets, dataset groups and reports; what lies in a folder is indexed.

The first revision makes whatever the schema holds, so that a new home has all of this already.
"""

from alembic import op
from sqlalchemy.schema import CreateIndex

from storage.engine.schema import metadata

revision = "0004_folder_contents"
down_revision = "0003_column_dependencies"
branch_labels = None
depends_on = None

TABLES = (
    "workflows",
    "workflow_versions",
    "workflow_labels",
    "ab_tests",
    "input_variable_sets",
    "dataset_groups",
    "reports",
)
INDEXES = {"folders": "ix_folders_parent", "prompts": "ix_prompts_folder", "tables": "ix_tables_folder"}


def upgrade() -> None:
    bind = op.get_bind()
    for name in TABLES:
        metadata.tables[name].create(bind, checkfirst=True)
    for table, name in INDEXES.items():
        (index,) = (one for one in metadata.tables[table].indexes if one.name == name)
        bind.execute(CreateIndex(index, if_not_exists=True))


def downgrade() -> None:
    bind = op.get_bind()
    for table, name in INDEXES.items():
        op.drop_index(name, table)
    for name in reversed(TABLES):
        metadata.tables[name].drop(bind, checkfirst=True)
