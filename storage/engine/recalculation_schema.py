"""Tables of the catalog: what recalculations are to do, what they found, and what was paid for."""

import sqlalchemy as sa

from storage.engine.schema_parts import (
    INTEGER,
    NEVER_REUSED,
    metadata,
    no_column,
    time_column,
    workspace_column,
)

# What a recalculation is to do and has done, beside its operation.
recalculations = sa.Table(
    "recalculations",
    metadata,
    sa.Column("operation_no", sa.ForeignKey("operations.no"), primary_key=True),
    # [Task] as storage/domain/recalculations.py spells them, in order of computation, when it was asked for
    sa.Column("columns", sa.JSON, nullable=False),
)

# Tasks as they stand now, where a run has begun them: what one says does not depend on how many there are.
recalculation_tasks = sa.Table(
    "recalculation_tasks",
    metadata,
    sa.Column("operation_no", sa.ForeignKey("operations.no"), primary_key=True),
    sa.Column("column_no", INTEGER, primary_key=True, autoincrement=False),
    sa.Column("task", sa.JSON, nullable=False),
)

# Answers that a run must not pay for twice, until their column is committed.
kept_answers = sa.Table(
    "kept_answers",
    metadata,
    no_column(),
    sa.Column("operation_no", sa.ForeignKey("operations.no"), nullable=False),
    sa.Column("column_no", INTEGER, nullable=False),
    # zlib-compressed JSON: [[row number, input hash, value, error, error message, metrics, cached]]
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Index("ix_kept_answers_operation", "operation_no", "column_no"),
    **NEVER_REUSED,
)

# Results of model calls by what was asked, for equal computations anywhere in the workspace.
model_results = sa.Table(
    "model_results",
    metadata,
    no_column(),
    workspace_column(),
    # SHA-256 of the computation
    sa.Column("key", sa.LargeBinary(32), nullable=False),
    # the recalculation that paid for it; it may be gone
    sa.Column("operation_no", INTEGER, nullable=False),
    # zlib-compressed JSON: [value, request_metrics]
    sa.Column("content", sa.LargeBinary, nullable=False),
    time_column("created_at"),
    sa.UniqueConstraint("workspace_id", "key"),
    sa.Index("ix_model_results_created_at", "created_at"),
    **NEVER_REUSED,
)

# What turned stale while a recalculation may compute it: its results are outdated then.
stale_marks = sa.Table(
    "stale_marks",
    metadata,
    no_column(),
    sa.Column("sheet_no", INTEGER, nullable=False),
    sa.Column("column_no", INTEGER, nullable=False),
    # [row number]; null: all
    sa.Column("rows", sa.JSON(none_as_null=True)),
    sa.Index("ix_stale_marks_column", "column_no", "no"),
    **NEVER_REUSED,
)

# What the cells of a column were last found to be computed from, as a whole.
column_prints = sa.Table(
    "column_prints",
    metadata,
    sa.Column("column_no", sa.ForeignKey("columns.no"), primary_key=True),
    sa.Column("fingerprint", sa.String(64), nullable=False),
)
