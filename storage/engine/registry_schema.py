"""Tables of the catalog: workflows with their versions, and what else lies in folders by a name alone."""

import sqlalchemy as sa

from storage.engine.schema_parts import (
    INTEGER,
    NEVER_REUSED,
    id_column,
    metadata,
    time_column,
    workspace_column,
)

_LIVE = sa.text("deleted_at IS NULL")


def _placed(
    name: str, *more: sa.Column[object], longest_name: int = 255, unique_name: bool = True
) -> sa.Table:
    """A table of named entities that lie in folders and are marked when they are deleted."""
    table = sa.Table(
        name,
        metadata,
        id_column(),
        workspace_column(),
        sa.Column("name", sa.String(longest_name), nullable=False),
        sa.Column("folder_id", sa.ForeignKey("folders.id")),
        sa.Column("user_id", sa.ForeignKey("users.id"), nullable=False),
        *more,
        time_column("created_at"),
        time_column("updated_at"),
        time_column("deleted_at", nullable=True),
        # how the contents of a folder are read
        sa.Index(f"ix_{name}_folder", "folder_id", "workspace_id", "deleted_at", "id"),
        **NEVER_REUSED,
    )
    if unique_name:
        # a name is free again once its entity is deleted
        sa.Index(
            f"uq_{name}_name",
            table.c.workspace_id,
            table.c.name,
            unique=True,
            sqlite_where=_LIVE,
            postgresql_where=_LIVE,
        )
    return table


workflows = _placed(
    "workflows",
    sa.Column("latest_version_number", sa.Integer, nullable=False),
    longest_name=512,
)
# One for each order of E27. They hold what it filters by, so that a deep page reads one index and no table.
for _sort in ("id", "created_at", "updated_at", "name"):
    _rest = [name for name in ("id", "created_at", "updated_at", "user_id") if name != _sort]
    sa.Index(
        f"ix_workflows_by_{_sort}",
        workflows.c.workspace_id,
        workflows.c.deleted_at,
        workflows.c[_sort],
        *(workflows.c[name] for name in _rest),
    )

workflow_versions = sa.Table(
    "workflow_versions",
    metadata,
    id_column(),
    sa.Column("workflow_id", sa.ForeignKey("workflows.id"), nullable=False),
    sa.Column("version_number", sa.Integer, nullable=False),
    # nodes, edges and every other key that was sent
    sa.Column("definition", sa.JSON, nullable=False),
    sa.Column("commit_message", sa.String(72)),
    sa.Column("user_id", sa.ForeignKey("users.id"), nullable=False),
    time_column("created_at"),
    sa.UniqueConstraint("workflow_id", "version_number"),
    **NEVER_REUSED,
)

workflow_labels = sa.Table(
    "workflow_labels",
    metadata,
    id_column(),
    sa.Column("workflow_id", sa.ForeignKey("workflows.id"), nullable=False),
    sa.Column("name", sa.String(512), nullable=False),
    sa.Column("workflow_version_id", sa.ForeignKey("workflow_versions.id"), nullable=False, index=True),
    time_column("created_at"),
    time_column("updated_at"),
    sa.UniqueConstraint("workflow_id", "name"),
    **NEVER_REUSED,
)

# Kept whole as sent; nothing here reads into it.
ab_tests = _placed("ab_tests", sa.Column("content", sa.JSON, nullable=False))
input_variable_sets = _placed("input_variable_sets", sa.Column("content", sa.JSON, nullable=False))

# The groups that dataset versions belong to; the group lies in a folder, not its versions. `sheet_no` is the
# sheet that keeps its rows: each version of the group is a version of that sheet, the draft is its head.
dataset_groups = _placed("dataset_groups", sa.Column("sheet_no", INTEGER))

# Versions and the draft, which has the number -1 and a state of `storage.domain.drafts`.
datasets = sa.Table(
    "datasets",
    metadata,
    id_column(),
    workspace_column(),
    sa.Column("dataset_group_id", sa.ForeignKey("dataset_groups.id"), nullable=False),
    sa.Column("version_number", sa.Integer, nullable=False),
    # the group's name, so that a page by name reads one index
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("state", sa.String(16)),
    # the work that the draft waits for
    sa.Column("operation_no", INTEGER),
    # the version of the group's sheet that holds the rows; null: a draft
    sa.Column("sheet_version", sa.Integer),
    sa.Column("column_names", sa.JSON, nullable=False),
    sa.Column("row_count", sa.BigInteger, nullable=False),
    sa.Column("filter_params", sa.JSON(none_as_null=True)),
    sa.Column("user_id", sa.ForeignKey("users.id"), nullable=False),
    time_column("created_at"),
    time_column("updated_at"),
    time_column("deleted_at", nullable=True),
    **NEVER_REUSED,
)
sa.Index(
    "uq_datasets_draft",
    datasets.c.dataset_group_id,
    unique=True,
    sqlite_where=sa.text("version_number = -1"),
    postgresql_where=sa.text("version_number = -1"),
)
# numbers of deleted versions are not given again
sa.Index(
    "uq_datasets_version",
    datasets.c.dataset_group_id,
    datasets.c.version_number,
    unique=True,
    sqlite_where=sa.text("version_number > 0"),
    postgresql_where=sa.text("version_number > 0"),
)
# so that those of many groups are counted by seeking each group, not by walking all that the workspace has
DATASETS_OF_GROUP = sa.Index(
    "ix_datasets_of_group", datasets.c.dataset_group_id, datasets.c.deleted_at, datasets.c.workspace_id
)
# One for each order of E25, as for workflows.
for _sort in ("id", "created_at", "updated_at", "name"):
    _rest = [
        name
        for name in ("id", "created_at", "updated_at", "dataset_group_id", "user_id", "deleted_at")
        if name != _sort
    ]
    sa.Index(
        f"ix_datasets_by_{_sort}",
        datasets.c.workspace_id,
        datasets.c[_sort],
        *(datasets.c[name] for name in _rest),
    )

# What a dataset's filter names: `kind` is prompt, prompt_version or prompt_label.
dataset_links = sa.Table(
    "dataset_links",
    metadata,
    sa.Column("kind", sa.String(16), primary_key=True),
    sa.Column("entity_id", INTEGER, primary_key=True),
    sa.Column("dataset_id", sa.ForeignKey("datasets.id"), primary_key=True),
)
# A pipeline and its runs; runs name the pipeline as their parent, and may share a name.
reports = _placed(
    "reports",
    sa.Column("dataset_group_id", sa.ForeignKey("dataset_groups.id"), index=True),
    sa.Column("parent_id", INTEGER, sa.ForeignKey("reports.id"), index=True),
    # the dataset that it reads; of a pipeline the default one
    sa.Column("dataset_id", INTEGER),
    # [{title, type, config, is_output_column}]; a run has those of its pipeline as they were then
    sa.Column("columns", sa.JSON, nullable=False, server_default="[]"),
    # of a run: the sheet that keeps its rows, and the operation that fills it
    sa.Column("sheet_no", INTEGER, index=True),
    sa.Column("operation_no", INTEGER),
    unique_name=False,
)
