"""Tables of the catalog: who may call, what exists, which snapshot is current, what work is under way.

Integers named `no` are internal, unique in the installation and never reused; `id` is what clients see.
The tables of workflows, datasets and their like stand in `registry_schema`, those of recalculations in
`recalculation_schema`, those of webhooks in `webhook_schema`.
"""

import sqlalchemy as sa

from storage.engine import recalculation_schema as _recalculation_schema  # noqa: F401 - as below
from storage.engine import registry_schema as _registry_schema  # noqa: F401 - its tables join the metadata
from storage.engine import webhook_schema as _webhook_schema  # noqa: F401 - as above
from storage.engine.schema_parts import INTEGER as _NO
from storage.engine.schema_parts import NEVER_REUSED as _NEVER_REUSED
from storage.engine.schema_parts import id_column as _id
from storage.engine.schema_parts import metadata as _metadata
from storage.engine.schema_parts import no_column as _no
from storage.engine.schema_parts import time_column as _time
from storage.engine.schema_parts import workspace_column as _workspace
from storage.engine.types import UtcTime

metadata = _metadata

secrets = sa.Table(
    "secrets",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("value", sa.LargeBinary, nullable=False),
)

workspaces = sa.Table(
    "workspaces",
    metadata,
    _id(),
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    _time("created_at"),
    **_NEVER_REUSED,
)

users = sa.Table(
    "users",
    metadata,
    _id(),
    _workspace(),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("email", sa.String(320)),
    _time("created_at"),
    sa.UniqueConstraint("workspace_id", "name"),
    **_NEVER_REUSED,
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    _id(),
    _workspace(),
    sa.Column("user_id", sa.ForeignKey("users.id"), nullable=False),
    sa.Column("prefix", sa.String(16), nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False, unique=True),
    sa.Column("scopes", sa.JSON, nullable=False),
    _time("created_at"),
    _time("expires_at", nullable=True),
    _time("revoked_at", nullable=True),
    **_NEVER_REUSED,
)

folders = sa.Table(
    "folders",
    metadata,
    _id(),
    _workspace(),
    sa.Column("parent_id", sa.ForeignKey("folders.id")),
    sa.Column("name", sa.String(255), nullable=False),
    _time("created_at"),
    _time("updated_at"),
    **_NEVER_REUSED,
)
sa.Index(
    "uq_folders_sibling_name",
    folders.c.workspace_id,
    sa.func.coalesce(folders.c.parent_id, 0),
    folders.c.name,
    unique=True,
)
# how the contents of a folder are read, and how a folder is found to be empty; on every table that has one
sa.Index("ix_folders_parent", folders.c.parent_id, folders.c.workspace_id, folders.c.id)

prompts = sa.Table(
    "prompts",
    metadata,
    _id(),
    _workspace(),
    sa.Column("name", sa.String(512), nullable=False),
    sa.Column("folder_id", sa.ForeignKey("folders.id")),
    sa.Column("tags", sa.JSON, nullable=False),
    _time("created_at"),
    _time("updated_at"),
    sa.UniqueConstraint("workspace_id", "name"),
    sa.Index("ix_prompts_folder", "folder_id", "workspace_id", "id"),
    **_NEVER_REUSED,
)

prompt_versions = sa.Table(
    "prompt_versions",
    metadata,
    _id(),
    sa.Column("prompt_id", sa.ForeignKey("prompts.id"), nullable=False),
    sa.Column("version_number", sa.Integer, nullable=False),
    sa.Column("prompt_template", sa.JSON, nullable=False),
    sa.Column("metadata", sa.JSON),
    sa.Column("commit_message", sa.String(72)),
    sa.Column("user_id", sa.ForeignKey("users.id"), nullable=False),
    _time("created_at"),
    sa.UniqueConstraint("prompt_id", "version_number"),
    **_NEVER_REUSED,
)

prompt_labels = sa.Table(
    "prompt_labels",
    metadata,
    _id(),
    sa.Column("prompt_id", sa.ForeignKey("prompts.id"), nullable=False),
    sa.Column("name", sa.String(512), nullable=False),
    sa.Column("prompt_version_id", sa.ForeignKey("prompt_versions.id"), nullable=False, index=True),
    _time("created_at"),
    _time("updated_at"),
    sa.UniqueConstraint("prompt_id", "name"),
    **_NEVER_REUSED,
)

# Which version includes which prompt as a snippet; `label` is the one that it pins, else empty.
prompt_includes = sa.Table(
    "prompt_includes",
    metadata,
    sa.Column("version_id", sa.ForeignKey("prompt_versions.id"), primary_key=True),
    sa.Column("snippet_id", sa.ForeignKey("prompts.id"), primary_key=True, index=True),
    sa.Column("label", sa.String(512), primary_key=True),
)

external_ids = sa.Table(
    "external_ids",
    metadata,
    sa.Column("workspace_id", sa.ForeignKey("workspaces.id"), primary_key=True),
    sa.Column("kind", sa.String(32), primary_key=True),
    sa.Column("source", sa.String(128), primary_key=True),
    sa.Column("external_id", sa.String(512), primary_key=True),
    sa.Column("entity_id", _NO, nullable=False),
    sa.Index("ix_external_ids_entity", "kind", "entity_id"),
)

tables = sa.Table(
    "tables",
    metadata,
    _no(),
    sa.Column("id", sa.Uuid, nullable=False, unique=True),
    _workspace(),
    sa.Column("title", sa.String(255), nullable=False),
    sa.Column("folder_id", sa.ForeignKey("folders.id")),
    # it keeps rows of a dataset group or of a report, and is no table to clients
    sa.Column("hidden", sa.Boolean, nullable=False, server_default=sa.false()),
    _time("created_at"),
    _time("updated_at"),
    _time("deleted_at", nullable=True),
    sa.Index("ix_tables_workspace_no", "workspace_id", "no"),
    sa.Index("ix_tables_workspace_title", "workspace_id", "title"),
    sa.Index("ix_tables_folder", "folder_id", "workspace_id", "deleted_at", "no"),
    **_NEVER_REUSED,
)

snapshots = sa.Table(
    "snapshots",
    metadata,
    _no(),
    sa.Column("sheet_no", _NO, nullable=False, index=True),
    sa.Column("base_no", _NO),
    # zlib-compressed JSON; see engine/manifest_codec.py for its shape. Empty where `manifest_no` names the
    # snapshot that has it: a commit of single cells changes no manifest
    sa.Column("manifest", sa.LargeBinary, nullable=False),
    sa.Column("manifest_no", _NO),
    sa.Column("row_count", sa.BigInteger, nullable=False),
    # [number] of the patches on top of the manifest, oldest first; null: none
    sa.Column("patches", sa.JSON(none_as_null=True)),
    # how much there is to fold and to join: cells and bytes of the patches, parts that could be fewer
    sa.Column("overlay_cells", _NO),
    sa.Column("overlay_bytes", _NO),
    sa.Column("part_count", _NO),
    _time("created_at"),
    **_NEVER_REUSED,
)

patches = sa.Table(
    "patches",
    metadata,
    _no(),
    sa.Column("sheet_no", _NO, nullable=False, index=True),
    # zlib-compressed JSON; see engine/overlay_codec.py for its shape
    sa.Column("content", sa.LargeBinary, nullable=False),
    _time("created_at"),
    **_NEVER_REUSED,
)

segments = sa.Table(
    "segments",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("sheet_no", _NO, nullable=False, index=True),
    # a key below the data URL, never a path of a machine
    sa.Column("key", sa.String(512), nullable=False, unique=True),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    # of the file's bytes, in hexadecimal
    sa.Column("sha256", sa.String(64), nullable=False),
    # [encoding] of the fields c0, c1, ...
    sa.Column("encodings", sa.JSON, nullable=False),
    # since when no snapshot names it, as the upkeep saw
    _time("unnamed_at", nullable=True),
    _time("created_at"),
)

sheets = sa.Table(
    "sheets",
    metadata,
    _no(),
    sa.Column("id", sa.Uuid, nullable=False, unique=True),
    sa.Column("table_no", sa.ForeignKey("tables.no"), nullable=False),
    _workspace(),
    sa.Column("title", sa.String(255), nullable=False),
    sa.Column("index", sa.Integer, nullable=False),
    sa.Column("row_count", sa.BigInteger, nullable=False),
    sa.Column("version_count", sa.Integer, nullable=False),
    sa.Column("head_no", sa.ForeignKey("snapshots.no"), nullable=False),
    # numbers of rows never go back, so that the id of a cell is never given twice
    sa.Column("next_row_no", sa.BigInteger, nullable=False),
    # the operation that may write rows now; one at a time
    sa.Column("writer_no", _NO),
    # how the sheet is scored: what was set of score_type, column_ids, code and language
    sa.Column("score_configuration", sa.JSON, nullable=False, server_default="{}"),
    _time("created_at"),
    _time("updated_at"),
    _time("deleted_at", nullable=True),
    sa.Index("ix_sheets_table_index", "table_no", "index"),
    sa.Index("ix_sheets_head_no", "head_no"),
    **_NEVER_REUSED,
)

columns = sa.Table(
    "columns",
    metadata,
    _no(),
    sa.Column("id", sa.Uuid, nullable=False, unique=True),
    sa.Column("sheet_no", sa.ForeignKey("sheets.no"), nullable=False),
    _workspace(),
    sa.Column("title", sa.String(255), nullable=False),
    sa.Column("type", sa.String(32), nullable=False),
    sa.Column("config", sa.JSON, nullable=False),
    sa.Column("position_rank", sa.BigInteger, nullable=False),
    sa.Column("is_output_column", sa.Boolean, nullable=False),
    # [{column_id, reference_type, config_key, config_meta}]: what its configuration reads
    sa.Column("dependencies", sa.JSON, nullable=False, server_default="[]"),
    _time("created_at"),
    _time("deleted_at", nullable=True),
    sa.Index("ix_columns_sheet_rank", "sheet_no", "position_rank"),
    **_NEVER_REUSED,
)

# The graph of live columns by number, derived from their dependencies.
column_edges = sa.Table(
    "column_edges",
    metadata,
    sa.Column("column_no", sa.ForeignKey("columns.no"), primary_key=True),
    sa.Column("source_no", sa.ForeignKey("columns.no"), primary_key=True),
    sa.Index("ix_column_edges_source", "source_no"),
)

sheet_versions = sa.Table(
    "sheet_versions",
    metadata,
    _no(),
    sa.Column("id", sa.Uuid, nullable=False, unique=True),
    sa.Column("sheet_no", sa.ForeignKey("sheets.no"), nullable=False),
    sa.Column("version_number", sa.Integer, nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("user_id", sa.ForeignKey("users.id"), nullable=False),
    sa.Column("snapshot_no", sa.ForeignKey("snapshots.no"), nullable=False),
    # source, source_version_id, counts
    sa.Column("metadata", sa.JSON, nullable=False),
    # what changed against the version before
    sa.Column("deltas", sa.JSON, nullable=False),
    # title, index and columns as they stood: zlib-compressed JSON, as a sheet has up to 5,000 columns
    sa.Column("structure", sa.LargeBinary, nullable=False),
    # the last score of this version, and the snapshot that it was made of; null: none was made
    sa.Column("score", sa.JSON, nullable=False, server_default="{}"),
    sa.Column("score_snapshot_no", _NO),
    sa.Column("score_configuration", sa.JSON, nullable=False, server_default="{}"),
    _time("created_at"),
    sa.UniqueConstraint("sheet_no", "version_number"),
    sa.Index("ix_sheet_versions_snapshot_no", "snapshot_no"),
    **_NEVER_REUSED,
)

operations = sa.Table(
    "operations",
    metadata,
    _no(),
    sa.Column("id", sa.String(128), nullable=False),
    _workspace(),
    sa.Column("user_id", sa.ForeignKey("users.id"), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("lane", sa.String(16), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("table_no", _NO),
    sa.Column("sheet_no", _NO, index=True),
    # sameness of a repeated call: SHA-256 of the validated fields and of the decoded file
    sa.Column("request_hash", sa.String(64), nullable=False),
    # what to do; no content, no path
    sa.Column("spec", sa.JSON, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("run_id", sa.String(64)),
    sa.Column("launched_at", UtcTime),
    sa.Column("progress", sa.Integer, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("error_message", sa.Text),
    sa.Column("rows_added", sa.BigInteger, nullable=False),
    # the first answer, for repeats
    sa.Column("answer", sa.JSON),
    _time("created_at"),
    _time("updated_at"),
    sa.UniqueConstraint("workspace_id", "id"),
    sa.Index("ix_operations_status", "status"),
    **_NEVER_REUSED,
)

# Calls for suggestions that the limit still counts; times in microseconds since 1970.
suggestion_calls = sa.Table(
    "suggestion_calls",
    metadata,
    _id(),
    sa.Column("key_id", _NO, nullable=False),
    sa.Column("called_us", _NO, nullable=False),
    sa.Index("ix_suggestion_calls_key", "key_id", "called_us"),
)

audit_entries = sa.Table(
    "audit_entries",
    metadata,
    _id(),
    _workspace(),
    # null: the operator, at the command line
    sa.Column("user_id", sa.ForeignKey("users.id")),
    sa.Column("action", sa.String(32), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("entity_id", sa.String(64), nullable=False),
    sa.Column("details", sa.JSON, nullable=False),
    _time("created_at"),
    sa.Index("ix_audit_entries_workspace", "workspace_id", "id"),
    **_NEVER_REUSED,
)
