"""The evaluator of SQL: one DuckDB expression over the columns of a row, behind the walls.

Requests and answers are those of `python`; a request of rows also names the SQL type of each column. Columns
are read by their titles, also as `data.title`. The database is empty, in memory, without access to anything
outside, and its settings are locked; the same holds for the process.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from time import monotonic
from typing import Any, NoReturn

import duckdb

from storage.domain.sql_reads import NotAnExpression, read_sql
from storage.engine.sandbox.inside.cells import (
    BATCH_S,
    CODE_ERROR,
    LONGEST_MESSAGE,
    MAX_VALUE,
    MEMORY_LIMIT,
    RESULT_TOO_LARGE,
)
from storage.engine.sandbox.inside.worker import Evaluator, Refusal

MEMORY_LIMIT_MB = 512
_BEFORE = "SELECT (\n"
# In this order: the last two end all changes.
_SETTINGS = (
    f"SET memory_limit = '{MEMORY_LIMIT_MB}MB'",
    "SET temp_directory = ''",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET allow_persistent_secrets = false",
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
# One value of these is kept as it is by `to_json`.
TYPES = frozenset({"VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN", "JSON"})
NO_TYPE = "NULL"

Values = list[Any]
Failure = tuple[int, str, str]


def evaluator() -> Evaluator:
    """Return an evaluator, its engine loaded and tried."""
    connection = duckdb.connect(config={"threads": 1, "async_threads": 0})
    for setting in _SETTINGS:
        connection.execute(setting)
    evaluate = _Evaluator(connection)
    evaluate({"inspect": "upper(a) || data.b"})
    evaluate({"prepare": "upper(a) || CAST(data.b AS BIGINT)"})
    parts = [b'["x","y"]', b'["1","z"]']
    answer = evaluate({"rows": 2, "names": ["a", "b"], "types": ["VARCHAR", "VARCHAR"], "parts": parts})
    found = json.loads(answer)
    if found["values"] != ["X1", None] or len(found["errors"]) != 1:
        raise RuntimeError("DuckDB does not compute")
    return evaluate


class _Evaluator:
    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._expression: str | None = None
        self._ordered = False
        aggregates = (
            "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_type = 'aggregate'"
        )
        scalars = (
            "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_type = 'scalar'"
        )
        self._aggregates = _first_column(connection, aggregates) - _first_column(connection, scalars)

    def __call__(self, request: Any) -> Any:
        if "inspect" in request:
            return asdict(read_sql(self._parsed(request["inspect"]), self._aggregates))
        if "prepare" in request:
            self._expression = None
            # a subquery may be computed as a join, which keeps no order
            self._ordered = "SUBQUERY" in json.dumps(self._parsed(request["prepare"]))
            self._expression = request["prepare"]
            return None
        if self._expression is None:
            raise Refusal({"why": "nothing was prepared"})
        return _Batch(self._connection, self._expression, request, ordered=self._ordered).answer()

    def _parsed(self, expression: str) -> Any:
        """Return the tree of the expression.

        Raises:
            Refusal: it does not parse, or is no single expression over one row.
        """
        if "\0" in expression:
            _refuse("it holds a NUL character")
        text = f"{_BEFORE}{expression}\n)"
        try:
            (spelled,) = _one(self._connection, "SELECT json_serialize_sql($1)", [text])
            parsed = json.loads(spelled)
            if parsed["error"]:
                _refuse(str(parsed["error_message"]), *_place(text, parsed.get("position")))
            read_sql(parsed, self._aggregates)
        except NotAnExpression as error:
            _refuse(str(error))
        except duckdb.Error as error:
            _refuse(_told(error))
        except RecursionError:
            _refuse("it is nested too deeply")
        return parsed


class _Batch:
    """One request: its columns, bound as JSON, and the query over them."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, expression: str, request: Any, *, ordered: bool
    ) -> None:
        self._connection, self._expression, self._ordered = connection, expression, ordered
        self._names, self._types = request["names"], request["types"]
        self._count: int = request["rows"]
        self._columns = [part.decode() for part in request["parts"]]
        self._until = monotonic() + BATCH_S

    def answer(self) -> bytes:
        try:
            text = self._run(self._expression, self._columns, self._count)
        except _OF_ROWS as error:
            return self._row_by_row(error)
        except duckdb.Error as error:
            _check_fatal(error)
            # of the expression and the types: no row could fare better
            message = _told(error)
            return _spelled([None] * self._count, [(row, CODE_ERROR, message) for row in range(self._count)])
        if "NaN" not in text and "Infinity" not in text and len(text) <= MAX_VALUE:
            return f'{{"values":{text},"errors":[]}}'.encode()
        values, errors = _checked(json.loads(text))
        return _spelled(values, errors)

    def _row_by_row(self, error: duckdb.Error) -> bytes:
        """Find the rows that fail: those that give nothing under TRY are asked alone."""
        if self._count == 1:
            return _spelled([None], [(0, _code(error), _told(error))])
        values, asked = self._tried()
        done = self._count
        errors: list[Failure] = []
        for row in asked:
            if monotonic() > self._until and row > 0:
                done = row
                break
            values[row], failure = self._one_row(row)
            if failure is not None:
                errors.append((row, *failure))
        return _spelled(values[:done], errors)

    def _tried(self) -> tuple[Values, Sequence[int]]:
        """Return the values that come without an error, and the rows that must be asked alone."""
        try:
            text = self._run(f"TRY(\n{self._expression}\n)", self._columns, self._count)
        except duckdb.Error as error:  # of a volatile function or a subquery, among others
            _check_fatal(error)
            return [None] * self._count, range(self._count)
        values = json.loads(text)
        return values, [row for row, value in enumerate(values) if value is None or _odd(value)]

    def _one_row(self, row: int) -> tuple[Any, tuple[str, str] | None]:
        columns = [json.dumps([column[row]]) for column in self._parsed_columns()]
        try:
            values, errors = _checked(json.loads(self._run(self._expression, columns, 1)))
        except duckdb.Error as error:
            _check_fatal(error)
            return None, (_code(error), _told(error))
        return values[0], errors[0][1:] if errors else None

    def _parsed_columns(self) -> list[Values]:
        if not hasattr(self, "_lists"):
            self._lists = [json.loads(column) for column in self._columns]
        return self._lists

    def _run(self, expression: str, columns: Sequence[str], count: int) -> str:
        bound: list[Any] = []
        row: list[str] = []
        for name, kind, column in zip(self._names, self._types, columns, strict=True):
            if kind in TYPES:
                bound.append(column)
                row.append(f"unnest(from_json(${len(bound)}, '[\"{kind}\"]')) AS {_quoted(name)}")
            else:
                row.append(f"NULL AS {_quoted(name)}")
        if self._ordered or not bound:
            bound.append(count)
            row.append(f"unnest(range(${len(bound)})) AS {_ROW}")
        place, order = (f"{_ROW}, ", f" ORDER BY {_ROW}") if self._ordered else ("", "")
        query = (
            # the expression has been checked to be one, and the process can reach nothing
            f"SELECT CAST(to_json(list({_VALUE}{order})) AS VARCHAR) FROM ("  # noqa: S608
            f"SELECT {place}(\n{expression}\n) AS {_VALUE} FROM (SELECT {', '.join(row)}) AS data)"
        )
        (text,) = _one(self._connection, query, bound)
        return str(text)


_ROW, _VALUE = '"\x01row"', '"\x01value"'
# What may be wrong with single rows, and what is wrong with all.
_OF_ROWS = (
    duckdb.ConversionException,
    duckdb.InvalidInputException,
    duckdb.OutOfRangeException,
    duckdb.OutOfMemoryException,
    duckdb.InvalidTypeException,
    duckdb.TypeMismatchException,
)


def _one(connection: duckdb.DuckDBPyConnection, query: str, bound: Sequence[Any]) -> tuple[Any, ...]:
    row = connection.execute(query, bound).fetchone()
    if row is None:
        raise RuntimeError("a query of one row has none")
    return row


def _first_column(connection: duckdb.DuckDBPyConnection, query: str) -> frozenset[str]:
    return frozenset(row[0] for row in connection.execute(query).fetchall())


def _check_fatal(error: duckdb.Error) -> None:
    if isinstance(error, (duckdb.FatalException, duckdb.InternalException)):
        # the database is of no use any more: another worker goes on
        raise MemoryError from None  # noqa: TRY004


def _code(error: duckdb.Error) -> str:
    return MEMORY_LIMIT if isinstance(error, duckdb.OutOfMemoryException) else CODE_ERROR


def _told(error: duckdb.Error) -> str:
    """The first line of what the engine says: the rest points into a query that the tenant never wrote."""
    return str(error).split("\n", 1)[0][:LONGEST_MESSAGE]


def _odd(value: Any) -> bool:
    return isinstance(value, (float, list, dict)) and not _finite(value)


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    return all(map(_finite, value)) if isinstance(value, list) else True


def _checked(values: Values) -> tuple[Values, list[Failure]]:
    """Take out what is no JSON value, or too large a one."""
    errors: list[Failure] = []
    for row, value in enumerate(values):
        if _odd(value):
            errors.append((row, CODE_ERROR, "The value holds a number that is not finite"))
        elif isinstance(value, (str, list, dict)) and len(_json(value)) > MAX_VALUE:
            errors.append((row, RESULT_TOO_LARGE, f"The value is over {MAX_VALUE} characters as JSON"))
        else:
            continue
        values[row] = None
    return values, errors


def _spelled(values: Values, errors: Sequence[Failure]) -> bytes:
    told = json.dumps([[*error, None] for error in errors])
    return f'{{"values":{_json(values)},"errors":{told}}}'.encode()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _place(text: str, position: Any) -> tuple[int | None, int | None]:
    """Line and position within the expression, from 1, of a byte offset within the statement."""
    if not str(position or "").isdigit():
        return None, None
    before = text.encode()[: int(position)].decode("utf-8", "replace")[len(_BEFORE) :]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def _refuse(why: str, line: int | None = None, position: int | None = None) -> NoReturn:
    raise Refusal({"why": why[:LONGEST_MESSAGE], "line": line, "position": position}) from None
