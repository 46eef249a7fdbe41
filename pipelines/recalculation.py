"""The work of a recalculation's run: columns in order, side by side where none reads another."""

import os
import time
from collections.abc import Callable, Mapping

from pipelines.column_run import Ended, Run, Told, compute_column
from pipelines.columns.protocol import RunnerKind
from pipelines.columns.registry import RUNNERS
from pipelines.columns.wallet import Wallet
from pipelines.side_by_side import SideBySide
from pipelines.work import ColumnRecord, Outcome, Report
from storage.domain.operations import Operation
from storage.domain.recalculations import DONE, Recalculation
from storage.operations import claim
from storage.recalculation_jobs import get_order, get_recalculation_of, is_turn
from storage.recalculation_progress import (
    complete_recalculation,
    kept_price,
    principal_of,
    stop_at_budget,
)
from storage.store import Store

WAIT_EVERY_S = 0.1
# each holds a block of rows, and some a worker of the sandbox, of which a workspace has a share of four
MOST_AT_ONCE = 4
_COMPUTE, _ASK = "compute", "ask"
_AT_ONCE = {_COMPUTE: min(2, os.cpu_count() or 1), _ASK: MOST_AT_ONCE}


def run_recalculation(store: Store, no: int, attempt: int, run_id: str, report: Report) -> Outcome:
    """Compute the cells that an operation asks for; a killed run goes on where it was.

    Raises:
        ClaimRefused: another run has the operation, or it was cancelled; committed columns stay.
        Unavailable: the disk is full or the catalog busy.
    """
    return recalculate(store, no, attempt, run_id, report, RUNNERS)


def recalculate(
    store: Store, no: int, attempt: int, run_id: str, report: Report, runners: Mapping[str, RunnerKind]
) -> Outcome:
    """As `run_recalculation`, with runners by type."""
    while not is_turn(store, no):
        time.sleep(WAIT_EVERY_S)
    operation = claim(store, no, attempt, run_id)
    found = get_recalculation_of(store, operation)
    wallet = Wallet(_budget_left(store, operation, found))
    told = Told(tasks={task.column_no: task for task in found.tasks})
    run = Run(store, operation, found.wanted, principal_of(store, operation), runners, wallet, told=told)
    report(f"Recalculating {len(found.tasks)} columns, attempt {attempt}.")
    records: list[ColumnRecord] = []

    def ended(one: Ended) -> bool:
        if one.record is not None:
            records.append(one.record)
            facts = one.record.facts
            done = int(facts["computed"]) + int(facts["cached"])
            report(f"Column {one.record.column_id}: {done} completed, {facts['failed']} failed.")
        return not one.stopped

    if _work_off(run, found, ended):
        complete_recalculation(store, operation)
    else:
        stop_at_budget(store, operation)
    return Outcome(_facts(get_recalculation_of(store, operation)), columns=tuple(records))


def _work_off(run: Run, found: Recalculation, ended: Callable[[Ended], bool]) -> bool:
    """Compute what is left; False when the budget ended it."""
    tasks = {task.column_no: task for task in found.tasks if task.state != DONE}
    order = get_order(run.store, run.operation, list(tasks))
    work = SideBySide[int, Ended](
        order.behind, lambda no: _ASK if no in order.asking else _COMPUTE, _AT_ONCE, MOST_AT_ONCE
    )
    return work.run(lambda no: compute_column(run, tasks[no]), ended, run.stop)


def _budget_left(store: Store, operation: Operation, found: Recalculation) -> float | None:
    """Return what may still be spent: not what was paid, also for answers that are not committed yet."""
    budget = found.wanted.budget
    if budget is None:
        return None
    done = sum(task.price for task in found.tasks if task.state == DONE)
    open_nos = [task.column_no for task in found.tasks if task.state != DONE]
    return budget - done - sum(kept_price(store, operation, no) for no in open_nos)


def _facts(done: Recalculation) -> dict[str, int | float | str]:
    return {
        "cells": done.cell_count,
        "completed": done.completed_count,
        "failed": done.failed_count,
        "cached": done.cached_count,
        "columns": len(done.tasks),
        "price": sum(task.price for task in done.tasks),
        "tokens": sum(task.tokens for task in done.tasks),
        "seconds": round(sum(task.seconds for task in done.tasks), 3),
    }
