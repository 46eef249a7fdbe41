"""The DuckDB file of a workspace: views with explicit file lists, replaced as one by a rename."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import duckdb
import pyarrow.parquet as pq

from storage.domain.log_columns import AS_OF_COLUMNS, LOG_COLUMNS
from storage.domain.log_deletions import NOTHING_GONE, Gone
from storage.engine.data_root import DataRoot
from storage.engine.log_patches import NONE, Patches
from storage.engine.log_sql import (
    LOG_NAMES,
    arrow_ids,
    duck,
    empty,
    present,
    quoted,
    scores_of,
    segments,
)
from storage.engine.rows.log_segments import LOGS, SCORES, Segment

# The oldest storage format that DuckDB 1.x reads: ad hoc users come with what they have.
_STORAGE_VERSION = "v1.0.0"
# Views stand on their own: older releases do not find one from within another when the file is attached.
_METADATA = (
    "SELECT id AS request_id, unnest(map_keys(metadata)) AS key, unnest(map_values(metadata)) AS value "
    "FROM ({})"
)
_TAGS = "SELECT id AS request_id, unnest(list_distinct(tags)) AS tag FROM ({})"
_SCORED = (
    "SELECT l.*, s.score, coalesce(s.scores, CAST(MAP {{}} AS MAP(VARCHAR, BIGINT))) AS scores "
    "FROM ({logs}) l LEFT JOIN (SELECT request_id, max(score) FILTER (name = 'default') AS score, "
    "map(list(name ORDER BY name), list(score ORDER BY name)) AS scores "
    "FROM ({scores}) GROUP BY request_id) s ON s.request_id = l.id"
)


@dataclass(frozen=True, slots=True)
class Unflushed:
    """What is in no segment yet: a SELECT of logs, the name of a relation of scores, how many logs."""

    logs: str
    scores: str
    rows: int
    last_id: int | None


@dataclass(frozen=True, slots=True)
class Deleted:
    """What views leave out, and the relation that lists the single ones (empty: there are none)."""

    gone: Gone = NOTHING_GONE
    relation: str = ""

    def test(self, of: str) -> str:
        return present(self.gone, self.relation, of=of)


NOTHING_DELETED = Deleted()


def view_key(workspace: str) -> str:
    return f"views/{workspace}.duckdb"


def publish_view_file(
    data: DataRoot,
    workspace: str,
    named: Sequence[Segment],
    as_of: datetime,
    *,
    patches: Patches = NONE,
    gone: Gone = NOTHING_GONE,
    file_id: UUID,
) -> None:
    """Write the view file of a workspace anew, and the files that it reads beside the segments.

    These hold patches of logs, and the single logs that are gone.

    Its paths are absolute, as ad hoc users open it from anywhere; so it is published again when the
    home folder was moved.

    Raises:
        Unavailable: the disk is full.
    """
    with data.writing(view_key(workspace)) as path, duck(threads=1) as connection:
        connection.execute(f"ATTACH {quoted(str(path))} AS published (STORAGE_VERSION '{_STORAGE_VERSION}')")
        kept = _keep_patches(connection, data, f"{patches_prefix(workspace)}{file_id.hex}.parquet", patches)
        listed = _keep_deleted(data, f"{deleted_prefix(workspace)}{file_id.hex}.parquet", gone)
        create_views(connection, "published", data, named, as_of, patches=kept, deleted=Deleted(gone, listed))
        connection.execute("DETACH published")


def patches_prefix(workspace: str) -> str:
    """How the keys of the files begin that hold what a workspace's views add to its segments."""
    return f"views/{workspace}.patches-"


def _keep_patches(
    connection: duckdb.DuckDBPyConnection, data: DataRoot, key: str, patches: Patches
) -> Patches:
    if not patches.rows:
        return NONE
    connection.register(patches.relation, patches.arrow())
    with data.writing(key) as path:
        connection.execute(f"COPY {patches.relation} TO {quoted(str(path))} (FORMAT parquet)")
    return replace(patches, relation=f"read_parquet({quoted(str(data.path(key)))})")


def deleted_prefix(workspace: str) -> str:
    """How the keys of the files begin that list what a workspace's views leave out of its segments."""
    return f"views/{workspace}.deleted-"


def _keep_deleted(data: DataRoot, key: str, gone: Gone) -> str:
    if not gone.ids:
        return ""
    with data.writing(key) as path:
        pq.write_table(arrow_ids(gone.ids), path, compression="zstd")
    return f"read_parquet({quoted(str(data.path(key)))})"


def create_views(
    connection: duckdb.DuckDBPyConnection,
    schema: str,
    data: DataRoot,
    named: Sequence[Segment],
    as_of: datetime,
    unflushed: Unflushed | None = None,
    patches: Patches = NONE,
    deleted: Deleted = NOTHING_DELETED,
) -> None:
    """Create the views in a schema, over segments and what is in none yet, patched."""
    logs = _logs(data, [segment for segment in named if segment.kind == LOGS], patches)
    if unflushed:
        newest = patches.joined(unflushed.logs) if patches.rows else unflushed.logs
        logs = f"{logs} UNION ALL {newest}"
    scores = scores_of(_paths(data, named, SCORES), unflushed.scores if unflushed else None)
    counted = None
    if deleted.gone != NOTHING_GONE:
        logs = f"SELECT * FROM ({logs}) WHERE {deleted.test('id')}"  # noqa: S608
        counted = f"(SELECT count(*) FROM ({logs}))"  # noqa: S608
        scores = f"SELECT * FROM ({scores}) WHERE {deleted.test('request_id')}"  # noqa: S608
    views = {
        "request_logs": logs,
        "scores": scores,
        "request_logs_as_of": _as_of(named, as_of, unflushed, counted),
        "request_metadata": _METADATA.format(logs),
        "request_tags": _TAGS.format(logs),
        "scored_request_logs": _SCORED.format(logs=logs, scores=scores),
    }
    for name, query in views.items():
        connection.execute(f"CREATE OR REPLACE VIEW {schema}.{name} AS {query}")


def _logs(data: DataRoot, named: Sequence[Segment], patches: Patches) -> str:
    """SELECT of the logs of segments; those without a patched log are read as if there were no patches."""
    touched = [one for one in named if patches.touch(one.first_id, one.last_id)]
    plain = [one for one in named if one not in touched]
    selects = [
        segments(_paths(data, some, LOGS), LOG_NAMES, LOG_COLUMNS) for some in (plain, touched) if some
    ]
    if touched:
        selects[-1] = patches.joined(selects[-1])
    return " UNION ALL ".join(selects) if selects else empty(LOG_COLUMNS)


def _paths(data: DataRoot, named: Sequence[Segment], kind: str) -> list[str]:
    return [str(data.path(segment.key)) for segment in named if segment.kind == kind]


def _as_of(
    named: Sequence[Segment], as_of: datetime, unflushed: Unflushed | None, counted: str | None
) -> str:
    """Say until when the views speak; `counted` is a query for how many logs, where some are hidden."""
    logs = [segment for segment in named if segment.kind == LOGS]
    last_ids = [segment.last_id for segment in logs]
    rows = sum(segment.rows for segment in logs)
    if unflushed and unflushed.last_id is not None:
        last_ids.append(unflushed.last_id)
        rows += unflushed.rows
    values = (quoted(as_of.isoformat()), str(max(last_ids, default="NULL")), counted or str(rows))
    pairs = zip(values, AS_OF_COLUMNS, strict=True)
    return "SELECT " + ", ".join(f'CAST({value} AS {c.type}) AS "{c.name}"' for value, c in pairs)
