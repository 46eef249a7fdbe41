"""DuckDB over logs: the tail as Arrow, its JSON spread into columns, segments by explicit list.

duckdb and pyarrow are imported at first use: a start that reads no log yet does not wait for them.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from storage.domain.log_columns import LOG_COLUMNS, SCORE_COLUMNS, PromisedColumn
from storage.domain.log_deletions import Gone
from storage.engine.rows.log_tail import TailRow

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

# What the JSON of a body holds, as DuckDB reads it; `JSON` fields become text.
_STRUCTURE = """{
  "request_start_time": "BIGINT", "request_end_time": "BIGINT",
  "provider": "VARCHAR", "model": "VARCHAR",
  "status": "VARCHAR", "error_type": "VARCHAR", "error_message": "VARCHAR",
  "prompt_id": "BIGINT", "prompt_name": "VARCHAR", "prompt_version_number": "BIGINT",
  "input_tokens": "BIGINT", "output_tokens": "BIGINT", "price": "DOUBLE",
  "function_name": "VARCHAR", "api_type": "VARCHAR", "tags": ["VARCHAR"],
  "metadata": "MAP(VARCHAR, VARCHAR)", "parameters": "JSON", "prompt_input_variables": "JSON",
  "input": "JSON", "output": "JSON"
}"""

_COMPUTED = {
    "id": "id",
    "created_at": "make_timestamptz(created_us)",
    "request_start_time": "make_timestamptz(b.request_start_time)",
    "request_end_time": "make_timestamptz(b.request_end_time)",
    "latency_ms": "(b.request_end_time - b.request_start_time) / 1000.0",
}


def _expression(column: PromisedColumn) -> str:
    value = _COMPUTED.get(column.name, f"b.{column.name}")
    return f'CAST({value} AS {column.type}) AS "{column.name}"'


LOG_NAMES = ", ".join(f'"{column.name}"' for column in LOG_COLUMNS)
SCORE_NAMES = ", ".join(f'"{column.name}"' for column in SCORE_COLUMNS)


def spread(relation: str) -> str:
    """SELECT of the promised columns from a relation with `id`, `created_us` and `body` (JSON text)."""
    columns = ", ".join(_expression(column) for column in LOG_COLUMNS)
    return f"SELECT {columns} FROM (SELECT id, created_us, json_transform_strict(body, '{_STRUCTURE}') AS b FROM {relation})"  # noqa: E501, S608


def spread_scores(relation: str) -> str:
    """SELECT of changed scores from a relation of `arrow_scores`."""
    return (
        f"SELECT request_id, name, score, make_timestamptz(updated_us) AS updated_at, change FROM {relation}"  # noqa: S608
    )


def empty(columns: Sequence[PromisedColumn]) -> str:
    """SELECT of no row, typed: what a view says before the first flush."""
    nulls = ", ".join(f'CAST(NULL AS {column.type}) AS "{column.name}"' for column in columns)
    return f"SELECT {nulls} WHERE false"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def segments(paths: Sequence[str], names: str, columns: Sequence[PromisedColumn]) -> str:
    """SELECT of the promised columns from an explicit list of files."""
    if not paths:
        return empty(columns)
    files = ", ".join(quoted(path) for path in paths)
    return f"SELECT {names} FROM read_parquet([{files}])"  # noqa: S608


def present(gone: Gone, deleted: str = "deleted_logs", *, of: str = "id") -> str:
    """Test of the column `of` that leaves out deleted logs; `deleted` is a relation of the single ones."""
    tests = [f"{of} > {gone.through:d}"] if gone.through else []
    if gone.ids:
        tests.append(f"{of} NOT IN (SELECT id FROM {deleted})")  # noqa: S608
    return " AND ".join(tests) or "true"


def arrow_ids(ids: Iterable[int]) -> "pa.Table":
    """Ids as a relation with the column `id`, in order."""
    import pyarrow as pa  # noqa: PLC0415

    return pa.table({"id": pa.array(sorted(ids), pa.int64())})


def latest_scores(relation: str) -> str:
    """SELECT of the promised columns of scores from rows with `change`: the last change of each counts."""
    return (
        f"SELECT {SCORE_NAMES} FROM ({relation}) "  # noqa: S608
        "QUALIFY row_number() OVER (PARTITION BY request_id, name ORDER BY change DESC) = 1"
    )


def scores_of(paths: Sequence[str], unflushed: str | None) -> str:
    """SELECT of the scores that count now, from files and a relation of `arrow_scores`."""
    files = ", ".join(quoted(path) for path in paths)
    sources = [f"SELECT * FROM read_parquet([{files}])"] if paths else []  # noqa: S608
    if unflushed:
        sources.append(spread_scores(unflushed))
    return latest_scores(" UNION ALL ".join(sources)) if sources else empty(SCORE_COLUMNS)


PIECE_BYTES = 2_097_152
"""DuckDB works on a piece of a relation at a time, and takes several times its bytes for what comes of it."""


def in_pieces(rows: Iterable[TailRow]) -> Iterator[list[TailRow]]:
    """Cut rows of the tail where they come to the bytes of a piece."""
    piece: list[TailRow] = []
    size = 0
    for row in rows:
        if piece and size + len(row.body) > PIECE_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(row)
        size += len(row.body)
    if piece:
        yield piece


def arrow_tail(rows: Iterable[TailRow]) -> "pa.Table":
    """The tail as DuckDB takes it: id, created_us, body; in pieces."""
    import pyarrow as pa  # noqa: PLC0415

    return pa.concat_tables([_arrow_piece(piece) for piece in in_pieces(rows)] or [_arrow_piece([])])


def _arrow_piece(rows: Sequence[TailRow]) -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415

    return pa.table(
        {
            "id": pa.array([row.id for row in rows], pa.int64()),
            "created_us": pa.array([row.created_us for row in rows], pa.int64()),
            "body": pa.array([row.body for row in rows], pa.binary()).cast(pa.string()),
        }
    )


@contextmanager
def duck(*, threads: int = 2, memory: str | None = "1GB") -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open an in-memory DuckDB that speaks UTC and fetches nothing from outside."""
    import duckdb  # noqa: PLC0415

    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": threads,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        # not the working folder, which may be anybody's
        "temp_directory": str(Path(tempfile.gettempdir()) / "promptlake-spill"),
    }
    if memory is not None:
        config["memory_limit"] = memory
    connection = duckdb.connect(config=config)
    try:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection
    finally:
        connection.close()
