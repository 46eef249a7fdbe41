"""Questions of the operator: DuckDB over a workspace with its unflushed tail, exact, read-only."""

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, TypeVar

import duckdb

from storage.engine.catalog import Catalog
from storage.engine.csv_lines import CsvLines
from storage.engine.data_root import DataRoot
from storage.engine.interruption import interruptibly
from storage.engine.log_patches import Patches
from storage.engine.log_segments import arrow_scores
from storage.engine.log_sql import arrow_ids, arrow_tail, duck, spread
from storage.engine.log_views import Deleted, Unflushed, create_views
from storage.engine.rows.log_deletions import select_gone
from storage.engine.rows.log_patches import select_patches
from storage.engine.rows.log_segments import select_changed_scores, select_segments
from storage.engine.rows.log_tail import select_tail

_EXPLAIN = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*EXPLAIN\b\s*(?:\(.*?\)|ANALYZE\b)?", re.IGNORECASE | re.DOTALL
)
_SELECT = duckdb.StatementType.SELECT
_FETCH_ROWS = 1000
_MANY = 2**31 - 1
T = TypeVar("T")


class QueryError(Exception):
    """The query cannot be answered; the text says why, for a person."""


def split_statements(text: str) -> list[str]:
    """Split a script at its semicolons; every statement must only read.

    Raises:
        QueryError: one has no meaning, or does more than read.
    """
    try:
        statements = duckdb.extract_statements(text)
        for statement in statements:
            inner = _inner(statement.query)
            if any(part.type != _SELECT for part in duckdb.extract_statements(inner)):
                raise QueryError("Only statements that read are taken here: SELECT, FROM, DESCRIBE, EXPLAIN")
    except duckdb.Error as error:
        raise QueryError(_sentence(error)) from error
    return [_without_end(statement.query) for statement in statements]


def _without_end(query: str) -> str:
    """A statement up to its semicolon, which comments may follow."""
    raw = query.encode()  # places are counted in bytes
    ends = [place for place, _ in duckdb.tokenize(query) if raw[place : place + 1] == b";"]
    return raw[: ends[0]].decode() if ends else query


def _inner(query: str) -> str:
    """What an EXPLAIN explains (and ANALYZE runs); any other statement as it is."""
    explained = _EXPLAIN.match(query)
    return query if explained is None else query[explained.end() :]


def _sentence(error: duckdb.Error) -> str:
    return str(error).strip()


class AdHoc:
    """One workspace at one moment."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def extend(self, add: Callable[[duckdb.DuckDBPyConnection], None]) -> None:
        """Let views be added."""
        with _plain_errors():
            add(self._connection)

    def show(self, query: str, *, max_rows: int, max_width: int) -> None:
        """Print an answer as a table; long values are cut to the width."""
        self._ask(lambda: self._show(query, max_rows, max_width))

    def _show(self, query: str, max_rows: int, max_width: int) -> None:
        relation = self._connection.sql(query)
        if _EXPLAIN.match(query):
            for _, plan in relation.fetchall():
                print(plan)  # noqa: T201
        else:
            relation.show(max_rows=max_rows, max_width=max_width)

    def write_csv(self, query: str, file: IO[str]) -> int:
        """Write an answer as CSV with a header; return how many rows."""
        return self._ask(lambda: self._write_csv(query, file))

    def _write_csv(self, query: str, file: IO[str]) -> int:
        count = 0
        lines = CsvLines()
        answer = self._connection.sql(query)
        file.write(lines.line(answer.columns))
        if not _EXPLAIN.match(query):  # as DuckDB spells values, which is not how Python does
            answer = answer.project("CAST(COLUMNS(*) AS VARCHAR)")
        for batch in answer.to_arrow_reader(_FETCH_ROWS):
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            file.writelines(lines.line(row) for row in rows)
            count += batch.num_rows
        return count

    def write_parquet(self, query: str, path: Path) -> None:
        """Write an answer as a Parquet file.

        Raises:
            OSError: the disk is full.
        """
        self._ask(lambda: self._write_parquet(query, path))

    def _write_parquet(self, query: str, path: Path) -> None:
        answer = self._connection.sql(query)
        try:
            answer.write_parquet(str(path), compression="zstd")
        except duckdb.IOException as error:
            # DuckDB tells it with places and internals of its own
            if os.strerror(errno.ENOSPC) in str(error):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
            raise

    def _ask(self, ask: Callable[[], T]) -> T:
        with _plain_errors():
            return interruptibly(self._connection, ask)


@contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise QueryError(_sentence(error)) from error


@contextmanager
def ad_hoc(logs: Catalog, data: DataRoot, workspace_id: int, now: datetime) -> Iterator[AdHoc]:
    """Open the views of a workspace as they stand now: all taken in one read."""
    with logs.read() as connection:
        named = select_segments(connection, workspace_id=workspace_id)
        tail = select_tail(connection, workspace_id)
        patches = Patches.of(select_patches(connection, workspace_id))
        gone = select_gone(connection, workspace_id)
        changed = [
            row for row in select_changed_scores(connection, _MANY) if row.workspace_id == workspace_id
        ]
    with duck(memory=None) as connection_:
        connection_.register("unflushed_logs", arrow_tail(tail))
        connection_.register("unflushed_scores", arrow_scores(changed))
        if patches.rows:
            connection_.register(patches.relation, patches.arrow())
        connection_.register("deleted_logs", arrow_ids(gone.ids))
        unflushed = Unflushed(
            logs=spread("unflushed_logs"),
            scores="unflushed_scores",
            rows=len(tail),
            last_id=tail[-1].id if tail else None,
        )
        deleted = Deleted(gone, "deleted_logs")
        with _plain_errors():
            create_views(connection_, "main", data, named, now, unflushed, patches, deleted)
        yield AdHoc(connection_)
