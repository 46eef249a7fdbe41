"""How a recalculation's run tells what it has done, keeps what is dear, and ends."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from storage.domain.keys import Principal
from storage.domain.operations import Operation
from storage.domain.recalculations import Recalculation, Task
from storage.domain.results import Answers, CellError
from storage.engine.catalog import Connection
from storage.engine.rows.operations import update_owned
from storage.engine.rows.recalculations import (
    find_recalculation_by_no,
    insert_kept,
    scan_kept,
    select_open_recalculations,
    set_task,
)
from storage.engine.rows.stale_marks import delete_marks
from storage.engine.rows.workspaces import find_user
from storage.operations import ClaimRefused, cancel_within, complete
from storage.recalculation_jobs import Job
from storage.store import Store

BUDGET_MESSAGE = "budget reached"
Recalled = tuple[str, Any, CellError | None, Mapping[str, Any] | None, bool]
"""Input hash, value, error, metrics, cached."""
# a statement names no more of them
_MOST_PIECES = 500


def principal_of(store: Store, operation: Operation) -> Principal:
    """Return the user that asked for an operation, as the one for whom its run works."""
    with store.catalog.read() as connection:
        name, email = find_user(connection, operation.user_id) or ("", None)
    return Principal(
        workspace_id=operation.workspace_id,
        user_id=operation.user_id,
        user_name=name,
        user_email=email,
        key_id=0,
        scopes=frozenset({"read", "write", "ingest"}),
    )


def tell(store: Store, operation: Operation, task: Task, tasks: Iterable[Task]) -> bool:
    """Keep how far a column is, and so all `tasks`; False when the run no longer owns the operation."""
    with store.catalog.transaction() as connection:
        owned = update_owned(connection, operation, _progress(store, list(tasks)))
        if owned:
            set_task(connection, operation.no, task)
        return owned


def _progress(store: Store, tasks: Sequence[Task]) -> dict[str, Any]:
    cells = sum(task.cell_count for task in tasks)
    tried = sum(task.completed + task.failed for task in tasks)
    percent = min(99, 100 * tried // cells) if cells else 0
    return {"progress": percent, "message": f"{tried} of {cells} cells", "updated_at": store.now()}


def note_task(store: Store, operation: Operation, task: Task) -> None:
    """Keep how a column ended that has nothing to commit: it is gone, or holds what it should."""
    with store.catalog.transaction() as connection:
        set_task(connection, operation.no, task)


def complete_recalculation(store: Store, operation: Operation) -> None:
    """End a recalculation whose cells were all tried.

    Raises:
        ClaimRefused: the run no longer owns it.
    """
    with store.catalog.transaction() as connection:
        found = _require(connection, operation)
        failed = f", {found.failed_count} failed" if found.failed_count else ""
        complete(connection, store, operation, f"{found.completed_count} cells completed{failed}")
        _forget_marks(connection, operation)


def stop_at_budget(store: Store, operation: Operation) -> None:
    """End a recalculation whose budget is spent: what is done is kept, the rest is as it was."""
    with store.catalog.transaction() as connection:
        cancel_within(connection, store, operation, BUDGET_MESSAGE)
        _forget_marks(connection, operation)


def _forget_marks(connection: Connection, operation: Operation) -> None:
    if operation.sheet_no is not None and not select_open_recalculations(connection, operation.sheet_no):
        delete_marks(connection, operation.sheet_no)


def _require(connection: Connection, operation: Operation) -> Recalculation:
    found = find_recalculation_by_no(connection, operation.no)
    if found is None:
        raise ClaimRefused(f"operation {operation.no} is gone")
    return found


def keep_answers(
    store: Store,
    job: Job,
    row_nos: Sequence[int],
    hashes: Sequence[str],
    values: Sequence[Any],
    answers: Answers,
) -> None:
    """Keep answers until their column is committed; a run that goes on does not pay for them again."""
    if not row_nos:
        return
    kept = []
    for at, (row_no, input_hash, value) in enumerate(zip(row_nos, hashes, values, strict=True)):
        error = answers.errors.get(at)
        code, message = (None, None) if error is None else (error.code, error.message)
        kept.append([row_no, input_hash, value, code, message, answers.metrics.get(at), at in answers.cached])
    with store.catalog.transaction() as connection:
        insert_kept(connection, job.operation.no, job.column.no, kept)


class KeptAnswers:
    """What earlier attempts of an operation answered for a column: read as its rows are visited.

    A piece holds answers to rows that were asked at about one time; which rows these are is remembered.
    """

    def __init__(self, store: Store, operation: Operation, column_no: int) -> None:
        self._store, self._operation_no, self._column_no = store, operation.no, column_no
        with store.catalog.read() as connection:
            self._pieces = [
                (no, min(rows), max(rows))
                for no, answers in scan_kept(connection, operation.no, column_no)
                if (rows := [answer[0] for answer in answers])
            ]

    def of(self, row_nos: Sequence[int]) -> dict[int, Recalled]:
        """Return the last answer of each of these rows that has one, by row number; they are in order."""
        if not self._pieces or not row_nos:
            return {}
        first, last = row_nos[0], row_nos[-1]
        wanted = [no for no, lowest, highest in self._pieces if lowest <= last and first <= highest]
        found: dict[int, Recalled] = {}
        with self._store.catalog.read() as connection:
            for at in range(0, len(wanted), _MOST_PIECES):
                some = wanted[at : at + _MOST_PIECES]
                for _, answers in scan_kept(connection, self._operation_no, self._column_no, some):
                    found |= {
                        answer[0]: _recalled(answer) for answer in answers if first <= answer[0] <= last
                    }
        return found


def _recalled(answer: Sequence[Any]) -> Recalled:
    _, input_hash, value, code, message, metrics, cached = answer
    return input_hash, value, None if code is None else CellError(code, message), metrics, cached


def kept_price(store: Store, operation: Operation, column_no: int) -> float:
    """Return what the answers kept for a column did cost: the last one of each row counts."""
    prices: dict[int, float] = {}
    with store.catalog.read() as connection:
        for _, answers in scan_kept(connection, operation.no, column_no):
            for row_no, *_, metrics, cached in answers:
                prices[row_no] = 0.0 if cached else float((metrics or {}).get("price", 0.0))
    return sum(prices.values())
