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

# The groups that dataset versions belong to; the group lies in a folder, not its versions.
dataset_groups = _placed("dataset_groups")
# A pipeline and its runs; runs name the pipeline as their parent, and may share a name.
reports = _placed(
    "reports",
    sa.Column("dataset_group_id", sa.ForeignKey("dataset_groups.id"), index=True),
    sa.Column("parent_id", INTEGER, sa.ForeignKey("reports.id"), index=True),
    unique_name=False,
)
