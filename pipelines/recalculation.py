"""The work of a recalculation's run: column by column in order of computation, one commit each."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pipelines.columns.hashing import config_digest
from pipelines.columns.protocol import EngineUnavailable, RunContext, Runner, RunnerKind
from pipelines.columns.registry import RUNNERS
from pipelines.columns.values import to_list
from pipelines.columns.visits import Kept, failed_block, no_cells, visit
from pipelines.work import ColumnRecord, Outcome, Report
from storage.domain.column_types import TYPES
from storage.domain.errors import DependencyCycle, InvalidConfig, NotFound
from storage.domain.keys import Principal
from storage.domain.operations import Operation
from storage.domain.recalculations import DONE, Recalculation, Task
from storage.domain.results import ENGINE_UNAVAILABLE, MISSING_SOURCE, Answers, CellError
from storage.operations import ClaimRefused, claim
from storage.recalculation_commit import Gathered
from storage.recalculation_jobs import (
    Block,
    Job,
    blocks,
    get_recalculation_of,
    is_turn,
    is_unchanged,
    open_job,
)
from storage.recalculation_progress import (
    complete_recalculation,
    keep_answers,
    kept_answers,
    note_task,
    principal_of,
    stop_at_budget,
    tell,
)
from storage.store import Store

PROGRESS_EVERY_S = 0.5
WAIT_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class _Run:
    """What all columns of a run share."""

    store: Store
    operation: Operation
    who: Principal
    runners: Mapping[str, RunnerKind]
    report: Report
    records: list[ColumnRecord] = field(default_factory=list)


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
    run = _Run(store, operation, principal_of(store, operation), runners, report)
    found = get_recalculation_of(store, operation)
    report(f"Recalculating {len(found.tasks)} columns, attempt {attempt}.")
    for task in found.tasks:
        if task.state != DONE and not _compute_column(run, get_recalculation_of(store, operation), task):
            break
    else:
        complete_recalculation(store, operation)
    return Outcome(_facts(get_recalculation_of(store, operation)), columns=tuple(run.records))


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


def _compute_column(run: _Run, found: Recalculation, task: Task) -> bool:
    """Compute one column; False when the budget is spent and the operation has ended."""
    started = time.monotonic()
    job = open_job(run.store, run.operation, found.wanted, task)
    if job is None:
        tried = task.completed + task.failed
        note_task(run.store, run.operation, replace(task, cell_count=tried, state=DONE))
        return True
    kind = run.runners.get(job.column.type)
    context = RunContext(run.store, run.who, run.operation, job.column, pinned=task.pinned)
    context, refused = _pinned(kind, context)
    job = replace(job, task=replace(task, pinned=context.pinned))
    digest = "" if kind is None else config_digest(job.column, kind.engine(job.column), context.pinned)
    if refused is None and kind is not None and is_unchanged(run.store, job, digest):
        same = replace(
            job.task, cell_count=job.visited, completed=job.visited, cached=job.visited, state=DONE
        )
        note_task(run.store, run.operation, same)
        run.records.append(ColumnRecord(str(job.column.id), job.column.type, _column_facts(same)))
        return True
    with Gathered(run.store, job, digest) as gathered:
        spent = sum(one.price for one in found.tasks if one.state == DONE)
        column = _Column(run, job, gathered, kind, started, spent, context, refused)
        stopped = column.compute()
        gathered.finish()
        done = gathered.task(time.monotonic() - started, done=True, stopped=stopped)
        gathered.commit(done)
    counts = gathered.counts
    facts = _column_facts(done)
    run.records.append(
        ColumnRecord(str(job.column.id), job.column.type, facts, counts.errors, counts.latencies)
    )
    run.report(f"Column {job.column.id}: {counts.completed} completed, {counts.failed} failed.")
    if stopped:
        stop_at_budget(run.store, run.operation)
    return not stopped


def _column_facts(task: Task) -> dict[str, int | float | str]:
    return {
        "rows": task.cell_count,
        "computed": task.completed - task.cached,
        "cached": task.cached,
        "failed": task.failed,
        "price": task.price,
        "tokens": task.tokens,
        "seconds": round(task.seconds, 3),
    }


def _pinned(kind: RunnerKind | None, context: RunContext) -> tuple[RunContext, CellError | None]:
    """Resolve what the column names outside of sheets, or say why every cell fails."""
    if kind is None:
        return context, None
    try:
        return replace(context, pinned=kind.pin(context)), None
    except (EngineUnavailable, InvalidConfig, NotFound, DependencyCycle) as error:
        return context, CellError(error.code, error.message)


class _Column:
    """The computation of one column of a run."""

    def __init__(
        self,
        run: _Run,
        job: Job,
        gathered: Gathered,
        kind: RunnerKind | None,
        started: float,
        spent: float,
        context: RunContext,
        refused: CellError | None,
    ) -> None:
        self._run, self._job, self._gathered, self._kind = run, job, gathered, kind
        self._started = started
        self._told_at = 0.0
        self._kept = kept_answers(run.store, job) if kind is not None and kind.keeps else {}
        self._spent = spent + sum(
            _price(metrics) for *_, metrics, cached in self._kept.values() if not cached
        )
        self._context, self._refused = context, refused
        self._completed = self._failed = 0  # of the block that is under way

    def compute(self) -> bool:
        """Compute all blocks; return whether the budget ended it."""
        self._tell()
        with self._opened() as (runner, refused), closing(blocks(self._run.store, self._job)) as found:
            for block in found:
                if not block.places:
                    self._gathered.add(block, no_cells(block))
                elif refused is not None:
                    self._gathered.add(block, failed_block(block, refused))
                elif runner is not None and self._visit(block, runner):
                    return True
                self._completed = self._failed = 0
                self._tell_now_and_then()
        return False

    @contextmanager
    def _opened(self) -> Iterator[tuple[Runner | None, CellError | None]]:
        """Open the runner, or say why every cell fails."""
        job, kind = self._job, self._kind
        gone = job.missing
        if gone is not None:
            yield None, CellError(MISSING_SOURCE, "A column that this one reads is gone")
            return
        if kind is None:
            yield None, _unavailable(job)
            return
        if self._refused is not None:
            yield None, self._refused
            return
        budget = job.wanted.budget
        left = None if budget is None else budget - self._spent
        context = replace(self._context, heard=self._hear, budget_left=left)
        with ExitStack() as stack:
            try:
                runner = stack.enter_context(kind.open(context))
            except (EngineUnavailable, InvalidConfig) as error:
                yield None, CellError(error.code, error.message)
                return
            yield runner, None

    def _visit(self, block: Block, runner: Runner) -> bool:
        kind, job, store = self._kind, self._job, self._run.store
        if kind is None:
            raise ValueError("a runner without a kind")
        digest = self._gathered.digest

        def told(piece: Answers, places: Sequence[int], hashes: Sequence[str]) -> bool:
            rows = [block.row_nos[place] for place in places]
            keep_answers(store, job, rows, hashes, to_list(piece.values), piece)
            paid = (one for at, one in piece.metrics.items() if at not in piece.cached)
            self._spent += sum(map(_price, paid))
            self._hear(len(piece.values) - len(piece.errors), len(piece.errors))
            budget = job.wanted.budget
            # free calls go through whatever the budget
            return budget is None or self._spent < budget or not self._spent

        recalled = {row: (one[0], Kept(*one[1:])) for row, one in self._kept.items()}
        computed, stopped = visit(
            job,
            block,
            runner,
            digest,
            kind.chunk_rows,
            kept=recalled,
            told=told if kind.keeps else None,
        )
        self._gathered.add(block, computed)
        return stopped

    def _hear(self, completed: int, failed: int) -> None:
        """Count rows of the block that is under way, so that the client sees them before it ends."""
        self._completed += completed
        self._failed += failed
        self._tell_now_and_then()

    def _tell_now_and_then(self) -> None:
        if time.monotonic() - self._told_at >= PROGRESS_EVERY_S:
            self._tell()

    def _tell(self) -> None:
        """Tell the client how far the column is.

        Raises:
            ClaimRefused: the operation was cancelled or taken over.
        """
        self._told_at = time.monotonic()
        task = self._gathered.task(self._told_at - self._started, done=False)
        task = replace(task, completed=task.completed + self._completed, failed=task.failed + self._failed)
        if not tell(self._run.store, self._run.operation, task):
            raise ClaimRefused(f"operation {self._run.operation.no} was cancelled or taken over")


def _price(metrics: Mapping[str, Any] | None) -> float:
    return float((metrics or {}).get("price", 0.0))


def _unavailable(job: Job) -> CellError:
    known = ", ".join(kind for kind in TYPES if kind in RUNNERS)
    message = f"Columns of type {job.column.type} cannot be computed here yet; {known} can"
    return CellError(ENGINE_UNAVAILABLE, message)
