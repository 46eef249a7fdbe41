"""Rows of recalculations and of the answers kept for them."""

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from storage.domain.operations import ENDED, RECALCULATE, Operation
from storage.domain.recalculations import Recalculation, Task, Wanted
from storage.engine.catalog import Connection
from storage.engine.recalculation_schema import (
    column_prints,
    kept_answers,
    recalculation_tasks,
    recalculations,
)
from storage.engine.schema import operations

_JOINED = sa.select(operations, recalculations.c.columns.label("tasks")).join(
    recalculations, recalculations.c.operation_no == operations.c.no
)
# each holds dozens of answers of models
_PIECES_AT_ONCE = 100


def insert_recalculation(connection: Connection, operation_no: int, tasks: Sequence[Task]) -> None:
    values = {"operation_no": operation_no, "columns": [task.to_json() for task in tasks]}
    connection.execute(recalculations.insert().values(values))


def set_task(connection: Connection, operation_no: int, task: Task) -> None:
    """Keep how far a column of a recalculation is."""
    one = recalculation_tasks.c
    where = (one.operation_no == operation_no) & (one.column_no == task.column_no)
    values: dict[str, Any] = {"task": task.to_json()}
    if not connection.execute(recalculation_tasks.update().where(where).values(values)).rowcount:
        values |= {"operation_no": operation_no, "column_no": task.column_no}
        connection.execute(recalculation_tasks.insert().values(values))


def find_recalculation(connection: Connection, sheet_no: int, public_id: str) -> Recalculation | None:
    """Return the recalculation of that id of a sheet."""
    where = (operations.c.sheet_no == sheet_no) & (operations.c.id == public_id)
    return next(iter(_read(connection, _JOINED.where(where))), None)


def find_recalculation_by_no(connection: Connection, operation_no: int) -> Recalculation | None:
    return next(iter(_read(connection, _JOINED.where(operations.c.no == operation_no))), None)


def select_open_recalculations(connection: Connection, sheet_no: int) -> list[Recalculation]:
    """Return those of a sheet that have not ended, oldest first."""
    where = (
        (operations.c.sheet_no == sheet_no)
        & (operations.c.kind == RECALCULATE)
        & operations.c.status.not_in(sorted(ENDED))
    )
    return _read(connection, _JOINED.where(where).order_by(operations.c.no))


def select_recalculations(
    connection: Connection, sheet_no: int, *, after: int | None, descending: bool, limit: int
) -> list[Recalculation]:
    """List a sheet's recalculations by age, beyond `after`."""
    no = operations.c.no
    where = (operations.c.sheet_no == sheet_no) & (operations.c.kind == RECALCULATE)
    if after is not None:
        where &= no < after if descending else no > after
    return _read(connection, _JOINED.where(where).order_by(no.desc() if descending else no).limit(limit))


def has_older_open(connection: Connection, sheet_no: int, operation_no: int) -> bool:
    """Say whether a recalculation of the sheet that was asked for before has not ended."""
    where = (
        (operations.c.sheet_no == sheet_no)
        & (operations.c.kind == RECALCULATE)
        & (operations.c.no < operation_no)
        & operations.c.status.not_in(sorted(ENDED))
    )
    return connection.execute(sa.select(operations.c.no).where(where).limit(1)).first() is not None


def _read(connection: Connection, query: sa.Select[Any]) -> list[Recalculation]:
    rows = [dict(row) for row in connection.execute(query).mappings()]
    begun = _begun(connection, [row["no"] for row in rows])
    found = []
    for values in rows:
        now = begun.get(values["no"], {})
        tasks = tuple(Task(**now.get(task["column_no"], task)) for task in values.pop("tasks"))
        operation = Operation(**values)
        found.append(Recalculation(operation, Wanted.from_json(operation.spec), tasks))
    return found


def _begun(connection: Connection, operation_nos: Sequence[int]) -> dict[int, dict[int, dict[str, Any]]]:
    """Return the tasks that runs have begun, by operation and column."""
    if not operation_nos:
        return {}
    one = recalculation_tasks.c
    found: dict[int, dict[int, dict[str, Any]]] = {}
    query = sa.select(one.operation_no, one.column_no, one.task).where(one.operation_no.in_(operation_nos))
    for operation_no, column_no, task in connection.execute(query):
        found.setdefault(operation_no, {})[column_no] = task
    return found


def insert_kept(connection: Connection, operation_no: int, column_no: int, answers: Sequence[Any]) -> None:
    """Keep answers: [row number, input hash, value, error, error message, metrics, cached] each."""
    content = zlib.compress(json.dumps(answers, ensure_ascii=False, separators=(",", ":")).encode(), 1)
    values = {"operation_no": operation_no, "column_no": column_no, "content": content}
    connection.execute(kept_answers.insert().values(values))


def scan_kept(
    connection: Connection, operation_no: int, column_no: int, pieces: Sequence[int] | None = None
) -> Iterator[tuple[int, list[list[Any]]]]:
    """Yield the pieces in which answers were kept for a column of an operation, oldest first, by number."""
    where = (kept_answers.c.operation_no == operation_no) & (kept_answers.c.column_no == column_no)
    if pieces is not None:
        where &= kept_answers.c.no.in_(pieces)
    query = sa.select(kept_answers.c.no, kept_answers.c.content).where(where).order_by(kept_answers.c.no)
    for no, content in connection.execute(query.execution_options(yield_per=_PIECES_AT_ONCE)):
        yield no, json.loads(zlib.decompress(content))


def delete_kept(connection: Connection, operation_no: int, column_no: int) -> None:
    where = (kept_answers.c.operation_no == operation_no) & (kept_answers.c.column_no == column_no)
    connection.execute(kept_answers.delete().where(where))


def find_fingerprints(connection: Connection, column_nos: Iterable[int]) -> dict[int, str]:
    where = column_prints.c.column_no.in_(list(column_nos))
    query = sa.select(column_prints.c.column_no, column_prints.c.fingerprint).where(where)
    return {row[0]: row[1] for row in connection.execute(query)}


def set_fingerprint(connection: Connection, column_no: int, fingerprint: str) -> None:
    connection.execute(column_prints.delete().where(column_prints.c.column_no == column_no))
    connection.execute(column_prints.insert().values(column_no=column_no, fingerprint=fingerprint))
