"""The DuckDB file of a workspace: views with explicit file lists, replaced as one by a rename."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import duckdb

from storage.domain.log_columns import AS_OF_COLUMNS, LOG_COLUMNS, SCORE_COLUMNS
from storage.engine.data_root import DataRoot
from storage.engine.log_sql import (
    LOG_NAMES,
    duck,
    empty,
    latest_scores,
    quoted,
    segments,
    spread_scores,
)
from storage.engine.rows.log_segments import LOGS, SCORES, Segment

# The oldest storage format that DuckDB 1.x reads: ad hoc users come with what they have.
_STORAGE_VERSION = "v1.0.0"


@dataclass(frozen=True, slots=True)
class Unflushed:
    """What is in no segment yet: a SELECT of logs, the name of a relation of scores, how many logs."""

    logs: str
    scores: str
    rows: int
    last_id: int | None


def view_key(workspace: str) -> str:
    return f"views/{workspace}.duckdb"


def publish_view_file(data: DataRoot, workspace: str, named: Sequence[Segment], as_of: datetime) -> None:
    """Write the view file of a workspace anew.

    Its paths are absolute, as ad hoc users open it from anywhere; so it is published again when the
    home folder was moved.

    Raises:
        Unavailable: the disk is full.
    """
    with data.writing(view_key(workspace)) as path, duck(threads=1) as connection:
        connection.execute(f"ATTACH {quoted(str(path))} AS published (STORAGE_VERSION '{_STORAGE_VERSION}')")
        create_views(connection, "published", data, named, as_of)
        connection.execute("DETACH published")


def create_views(
    connection: duckdb.DuckDBPyConnection,
    schema: str,
    data: DataRoot,
    named: Sequence[Segment],
    as_of: datetime,
    unflushed: Unflushed | None = None,
) -> None:
    """Create the three views in a schema, over segments and what is in none yet."""
    logs = segments(_paths(data, named, LOGS), LOG_NAMES, LOG_COLUMNS)
    if unflushed:
        logs = f"{logs} UNION ALL {unflushed.logs}"
    for name, query in (
        ("request_logs", logs),
        ("scores", _scores(_paths(data, named, SCORES), unflushed)),
        ("request_logs_as_of", _as_of(named, as_of, unflushed)),
    ):
        connection.execute(f"CREATE OR REPLACE VIEW {schema}.{name} AS {query}")


def _paths(data: DataRoot, named: Sequence[Segment], kind: str) -> list[str]:
    return [str(data.path(segment.key)) for segment in named if segment.kind == kind]


def _scores(paths: Sequence[str], unflushed: Unflushed | None) -> str:
    files = ", ".join(quoted(path) for path in paths)
    sources = [f"SELECT * FROM read_parquet([{files}])"] if paths else []  # noqa: S608
    if unflushed:
        sources.append(spread_scores(unflushed.scores))
    return latest_scores(" UNION ALL ".join(sources)) if sources else empty(SCORE_COLUMNS)


def _as_of(named: Sequence[Segment], as_of: datetime, unflushed: Unflushed | None) -> str:
    logs = [segment for segment in named if segment.kind == LOGS]
    last_ids = [segment.last_id for segment in logs]
    rows = sum(segment.rows for segment in logs)
    if unflushed and unflushed.last_id is not None:
        last_ids.append(unflushed.last_id)
        rows += unflushed.rows
    values = (quoted(as_of.isoformat()), str(max(last_ids, default="NULL")), str(rows))
    pairs = zip(values, AS_OF_COLUMNS, strict=True)
    return "SELECT " + ", ".join(f'CAST({value} AS {c.type}) AS "{c.name}"' for value, c in pairs)
