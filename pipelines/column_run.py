"""One column of a recalculation: visited block by block, told of now and then, committed once."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from threading import Event

from pipelines.columns.hashing import config_digest
from pipelines.columns.pace import Pace
from pipelines.columns.protocol import EngineUnavailable, RunContext, Runner, RunnerKind
from pipelines.columns.values import to_list
from pipelines.columns.visits import Kept, failed_block, no_cells, visit
from pipelines.columns.wallet import Wallet
from pipelines.work import ColumnRecord
from storage.domain.column_types import TYPES
from storage.domain.errors import DependencyCycle, InvalidConfig, NotFound
from storage.domain.keys import Principal
from storage.domain.operations import Operation
from storage.domain.recalculations import DONE, Task, Wanted
from storage.domain.results import ENGINE_UNAVAILABLE, MISSING_SOURCE, Answers, CellError, TooMuchAtOnce
from storage.operations import ClaimRefused
from storage.recalculation_commit import Gathered
from storage.recalculation_jobs import CHUNK_ROWS, Block, Job, blocks, is_unchanged, open_job
from storage.recalculation_progress import KeptAnswers, keep_answers, note_task, tell
from storage.store import Store

PROGRESS_EVERY_S = 0.5
# results that are computed at once
_RESULT_BYTES = 16 << 20


@dataclass(slots=True)
class Told:
    """When the client of a run was told of any of its columns last, and how far each was then or is now."""

    at: float = 0.0
    tasks: dict[int, Task] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """What all columns of a run share; `stop` is set when they are to end without a commit."""

    store: Store
    operation: Operation
    wanted: Wanted
    who: Principal
    runners: Mapping[str, RunnerKind]
    wallet: Wallet
    stop: Event = field(default_factory=Event)
    told: Told = field(default_factory=Told)


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of a column: what is told of it (None: it is gone), and whether the budget ended it."""

    record: ColumnRecord | None = None
    stopped: bool = False


def compute_column(run: Run, task: Task) -> Ended:
    """Compute one column and publish it; the others of the run may be computed meanwhile.

    Raises:
        ClaimRefused: the run no longer has the operation, or is to end; nothing of the column was published.
    """
    started = time.monotonic()
    if run.stop.is_set():
        raise ClaimRefused(f"the run of operation {run.operation.no} ends")
    job = open_job(run.store, run.operation, run.wanted, task)
    if job is None:
        tried = task.completed + task.failed
        _note(run, replace(task, cell_count=tried, state=DONE))
        return Ended()
    kind = run.runners.get(job.column.runner)
    context = RunContext(
        run.store, run.who, job.column, task.pinned, operation=run.operation, wallet=run.wallet
    )
    context, refused = _pinned(kind, context)
    job = replace(job, task=replace(task, pinned=context.pinned))
    digest = "" if kind is None else config_digest(job.column, kind.engine(job.column), context.pinned)
    if refused is None and kind is not None and is_unchanged(run.store, job, digest):
        same = replace(
            job.task, cell_count=job.visited, completed=job.visited, cached=job.visited, state=DONE
        )
        _note(run, same)
        return Ended(ColumnRecord(str(job.column.id), job.column.type, _facts(same)))
    with Gathered(run.store, job, digest) as gathered:
        stopped = _Column(run, job, gathered, kind, started, context, refused).compute()
        gathered.finish()
        done = gathered.task(time.monotonic() - started, done=True, stopped=stopped)
        gathered.commit(done)
    run.told.tasks[done.column_no] = done
    counts = gathered.counts
    record = ColumnRecord(str(job.column.id), job.column.type, _facts(done), counts.errors, counts.latencies)
    return Ended(record, stopped)


def _note(run: Run, task: Task) -> None:
    note_task(run.store, run.operation, task)
    run.told.tasks[task.column_no] = task


def _facts(task: Task) -> dict[str, int | float | str]:
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
        run: Run,
        job: Job,
        gathered: Gathered,
        kind: RunnerKind | None,
        started: float,
        context: RunContext,
        refused: CellError | None,
    ) -> None:
        self._run, self._job, self._gathered, self._kind = run, job, gathered, kind
        self._started = started
        self._told_at = started
        keeps = kind is not None and kind.keeps
        self._kept = KeptAnswers(run.store, run.operation, job.column.no) if keeps else None
        self._context, self._refused = context, refused
        self._completed = self._failed = 0  # of the block that is under way

    def compute(self) -> bool:
        """Compute all blocks; return whether the budget ended it."""
        # thousands of small columns are not told of one by one; what was resolved must be kept
        if self._job.task.pinned or time.monotonic() - self._run.told.at >= PROGRESS_EVERY_S:
            self._tell()
        kind = self._kind
        # answers of models wait in memory with all that is told of their calls
        most_rows = kind.chunk_rows if kind is not None and kind.keeps else CHUNK_ROWS
        pace = Pace((kind and kind.first_rows) or most_rows, most_rows, _RESULT_BYTES)
        read = blocks(self._run.store, self._job, most_rows)
        with self._opened() as (runner, refused), closing(read) as found:
            for block in found:
                if not block.places:
                    self._gathered.add(block, no_cells(block))
                elif refused is not None:
                    self._gathered.add(block, failed_block(block, refused))
                elif runner is not None and self._visit_all(block, runner, pace):
                    return True
                self._tell_now_and_then()
        return False

    def _visit_all(self, block: Block, runner: Runner, pace: Pace) -> bool:
        """Compute a block, as many rows at once as memory can hold the results of."""
        rest: Block | None = block
        while rest is not None:
            whole = rest
            part, rest = whole.split(pace.rows)
            try:
                stopped, size = self._visit(part, runner)
            except TooMuchAtOnce:
                pace.slow(len(part.places))
                rest = whole
                continue
            self._completed = self._failed = 0
            pace.note(len(part.places), size)
            if stopped:
                return True
            self._tell_now_and_then()
        return False

    @contextmanager
    def _opened(self) -> Iterator[tuple[Runner | None, CellError | None]]:
        """Open the runner, or say why every cell fails."""
        job, kind = self._job, self._kind
        if job.missing is not None:
            yield None, CellError(MISSING_SOURCE, job.missing)
            return
        if kind is None:
            yield None, _unavailable(job, self._run.runners)
            return
        if self._refused is not None:
            yield None, self._refused
            return
        with ExitStack() as stack:
            try:
                runner = stack.enter_context(kind.open(replace(self._context, heard=self._hear)))
            except (EngineUnavailable, InvalidConfig) as error:
                yield None, CellError(error.code, error.message)
                return
            yield runner, None

    def _visit(self, block: Block, runner: Runner) -> tuple[bool, int]:
        """Compute rows; return whether the budget ended it, and how many bytes the results are."""
        kind = self._kind
        if kind is None:
            raise ValueError("a runner without a kind")
        kept = {} if self._kept is None else self._kept.of(block.row_nos)
        computed, stopped = visit(
            self._job,
            block,
            runner,
            self._gathered.digest,
            kind.chunk_rows,
            kept={row: (one[0], Kept(*one[1:])) for row, one in kept.items()},
            told=self._keeping(block) if kind.keeps else None,
        )
        return stopped, self._gathered.add(block, computed)

    def _keeping(self, block: Block) -> Callable[[Answers, Sequence[int], Sequence[str]], bool]:
        """Return what keeps each piece of a block's answers, and says whether more may be asked."""
        run, job = self._run, self._job

        def told(piece: Answers, places: Sequence[int], hashes: Sequence[str]) -> bool:
            rows = [block.row_nos[place] for place in places]
            keep_answers(run.store, job, rows, hashes, to_list(piece.values), piece)
            self._hear(len(piece.values) - len(piece.errors), len(piece.errors))
            return not run.wallet.is_spent

        return told

    def _hear(self, completed: int, failed: int) -> None:
        """Count rows of the block that is under way, so that the client sees them before it ends."""
        self._completed += completed
        self._failed += failed
        self._tell_now_and_then()

    def _tell_now_and_then(self) -> None:
        if self._run.stop.is_set():
            raise ClaimRefused(f"the run of operation {self._run.operation.no} ends")
        if time.monotonic() - self._told_at >= PROGRESS_EVERY_S:
            self._tell()

    def _tell(self) -> None:
        """Tell the client how far the column is.

        Raises:
            ClaimRefused: the operation was cancelled or taken over.
        """
        self._told_at = self._run.told.at = time.monotonic()
        task = self._gathered.task(self._told_at - self._started, done=False)
        task = replace(task, completed=task.completed + self._completed, failed=task.failed + self._failed)
        known = self._run.told.tasks
        known[task.column_no] = task
        if not tell(self._run.store, self._run.operation, task, known.copy().values()):
            raise ClaimRefused(f"operation {self._run.operation.no} was cancelled or taken over")


def _unavailable(job: Job, runners: Mapping[str, RunnerKind]) -> CellError:
    known = ", ".join(kind for kind in TYPES if kind in runners)
    message = f"Columns of type {job.column.type} cannot be computed here yet; {known} can"
    return CellError(ENGINE_UNAVAILABLE, message)
