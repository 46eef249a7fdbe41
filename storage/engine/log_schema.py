"""Tables of the log database: the durable tail, the manifest of flushed segments, scores, patches.

They share one database because a flush must publish a segment and forget the tail's rows in one
transaction: that is what lets a reader see each log once.
"""

import sqlalchemy as sa

log_metadata = sa.MetaData()

_NO = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, _NO, nullable=False)


# One row. Every group of logs raises `next_id` in its own transaction, so that ids grow in the order of
# commits and are never given twice, whichever process writes.
log_state = sa.Table(
    "log_state",
    log_metadata,
    sa.Column("only", sa.Integer, primary_key=True),
    _number("next_id"),
    # bytes ever appended and ever flushed: their difference is the size of the tail
    _number("appended_bytes"),
    _number("flushed_bytes"),
    # tail rows up to this id are in segments; readers skip them, trimming removes them later
    _number("flushed_through"),
    # the last change of a score, and the last one that is in a segment
    _number("score_change"),
    _number("scores_through"),
    # the last change of a patch
    sa.Column("patch_change", _NO, nullable=False, server_default="0"),
)

# Times of this database are microseconds since 1970 (UTC): they are written and compared by the million.
log_tail = sa.Table(
    "log_tail",
    log_metadata,
    sa.Column("id", _NO, primary_key=True, autoincrement=False),
    _number("workspace_id"),
    _number("created_us"),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

log_segments = sa.Table(
    "log_segments",
    log_metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    _number("workspace_id"),
    # request_logs or scores
    sa.Column("kind", sa.String(16), nullable=False),
    # a key below the data URL, never a path of a machine
    sa.Column("key", sa.String(512), nullable=False, unique=True),
    # ids of logs, or numbers of score changes: both inclusive
    _number("first_id"),
    _number("last_id"),
    _number("rows"),
    _number("bytes"),
    sa.Column("sha256", sa.String(64), nullable=False),
    _number("created_us"),
    # when its first and last log were recorded; unknown for scores and for files of older releases
    sa.Column("from_us", _NO),
    sa.Column("to_us", _NO),
    sa.Index("ix_log_segments_scope", "workspace_id", "kind", "first_id"),
)

# One row per lease: whoever holds it may flush.
log_leases = sa.Table(
    "log_leases",
    log_metadata,
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("owner", sa.String(64), nullable=False),
    _number("until_us"),
)

log_scores = sa.Table(
    "log_scores",
    log_metadata,
    sa.Column("workspace_id", _NO, primary_key=True, autoincrement=False),
    sa.Column("request_id", _NO, primary_key=True, autoincrement=False),
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("score", sa.Integer, nullable=False),
    _number("updated_us"),
    # grows with every change of any score: what is above the published number goes into the next segment
    _number("change"),
    sa.Index("ix_log_scores_change", "change"),
)

# What was said of a request after it was logged, one merged patch a request; it stays until a flush or a
# compaction has written the log anew with it. `storage.engine.log_patches` says how it is read.
log_patches = sa.Table(
    "log_patches",
    log_metadata,
    sa.Column("workspace_id", _NO, primary_key=True, autoincrement=False),
    sa.Column("request_id", _NO, primary_key=True, autoincrement=False),
    # JSON, a part of the fields of a log
    sa.Column("body", sa.LargeBinary, nullable=False),
    _number("updated_us"),
    # grows with every change of any patch
    _number("change"),
)

log_groups = sa.Table(
    "log_groups",
    log_metadata,
    sa.Column("id", _NO, primary_key=True),
    _number("workspace_id"),
    _number("created_us"),
    sqlite_autoincrement=True,
)

idempotency_keys = sa.Table(
    "idempotency_keys",
    log_metadata,
    sa.Column("workspace_id", _NO, primary_key=True, autoincrement=False),
    sa.Column("key", sa.String(255), primary_key=True),
    sa.Column("request_hash", sa.LargeBinary(32), nullable=False),
    _number("log_id"),
    _number("created_us"),
    sa.Index("ix_idempotency_keys_created", "created_us"),
)

# How far the DuckDB view file of a workspace is behind the manifest.
log_views = sa.Table(
    "log_views",
    log_metadata,
    sa.Column("workspace_id", _NO, primary_key=True, autoincrement=False),
    _number("logs_through"),
    _number("scores_through"),
    # the last change of a patch that it shows
    sa.Column("patches_through", _NO, nullable=False, server_default="0"),
    _number("published_us"),
    # the number of `log_manifests` that it shows
    sa.Column("change", _NO, nullable=False, server_default="0"),
)

# Grows whenever what the segments of a workspace show is changed by other than a flush: files were rewritten,
# logs were deleted.
log_manifests = sa.Table(
    "log_manifests",
    log_metadata,
    sa.Column("workspace_id", _NO, primary_key=True, autoincrement=False),
    _number("change"),
)

# Logs that were deleted and still stand in files: every reader leaves them out, compaction rewrites the files
# and forgets them here.
log_deletions = sa.Table(
    "log_deletions",
    log_metadata,
    sa.Column("workspace_id", _NO, primary_key=True, autoincrement=False),
    sa.Column("log_id", _NO, primary_key=True, autoincrement=False),
    _number("deleted_us"),
)

# How long a workspace keeps its logs (null: for ever), and up to which id all of them are gone.
log_keeping = sa.Table(
    "log_keeping",
    log_metadata,
    sa.Column("workspace_id", _NO, primary_key=True, autoincrement=False),
    sa.Column("keep_days", sa.Integer),
    sa.Column("gone_through", _NO, nullable=False, server_default="0"),
    sa.Column("gone_us", _NO, nullable=False, server_default="0"),
)

# Files that the manifest no longer names, and since when: those who read by an older manifest finish first.
log_retired = sa.Table(
    "log_retired",
    log_metadata,
    sa.Column("key", sa.String(512), primary_key=True),
    _number("retired_us"),
)

# What is made from a segment and can be made again: the index of its words, the dictionary of its values.
log_companions = sa.Table(
    "log_companions",
    log_metadata,
    sa.Column("segment_id", sa.Uuid, primary_key=True),
    sa.Column("kind", sa.String(16), primary_key=True),
    sa.Column("key", sa.String(512), nullable=False, unique=True),
    _number("bytes"),
    # unknown of those that were made before it was kept
    sa.Column("sha256", sa.String(64)),
)
