"""The DuckDB file of a workspace: views with explicit file lists, replaced as one by a rename."""

from collections.abc import Sequence
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
)
from storage.engine.rows.log_segments import LOGS, SCORES, Segment

# The oldest storage format that DuckDB 1.x reads: ad hoc users come with what they have.
_STORAGE_VERSION = "v1.0.0"


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
    *,
    tail: str | None = None,
) -> None:
    """Create the three views in a schema; `tail` is a SELECT of logs that are in no segment yet."""
    logs = segments(_paths(data, named, LOGS), LOG_NAMES, LOG_COLUMNS)
    if tail:
        logs = f"{logs} UNION ALL {tail}"
    for name, query in (
        ("request_logs", logs),
        ("scores", _scores(_paths(data, named, SCORES))),
        ("request_logs_as_of", _as_of(named, as_of)),
    ):
        connection.execute(f"CREATE OR REPLACE VIEW {schema}.{name} AS {query}")


def _paths(data: DataRoot, named: Sequence[Segment], kind: str) -> list[str]:
    return [str(data.path(segment.key)) for segment in named if segment.kind == kind]


def _scores(paths: Sequence[str]) -> str:
    if not paths:
        return empty(SCORE_COLUMNS)
    return latest_scores(f"SELECT * FROM read_parquet([{', '.join(quoted(path) for path in paths)}])")  # noqa: S608


def _as_of(named: Sequence[Segment], as_of: datetime) -> str:
    logs = [segment for segment in named if segment.kind == LOGS]
    values = (
        quoted(as_of.isoformat()),
        str(max((segment.last_id for segment in logs), default="NULL")),
        str(sum(segment.rows for segment in logs)),
    )
    pairs = zip(values, AS_OF_COLUMNS, strict=True)
    return "SELECT " + ", ".join(f'CAST({value} AS {c.type}) AS "{c.name}"' for value, c in pairs)
