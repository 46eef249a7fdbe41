"""Code of a tenant over rows: checked, then evaluated batch by batch in workers of its own.

A worker serves one operation. A batch that meets a limit ends its worker; its rows are then tried in smaller
batches and at last one at a time, so that the row that is at fault fails alone.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from storage.domain.errors import InvalidConfig, LimitReached
from storage.domain.results import CellError, TooMuchAtOnce, Values
from storage.engine.sandbox.answers import Unreadable, read_cells
from storage.engine.sandbox.inside.frames import FrameTooLarge
from storage.engine.sandbox.kinds import SQL, Kind
from storage.engine.sandbox.pool import Pool
from storage.engine.sandbox.process import Refused, Worker

if TYPE_CHECKING:
    from storage.engine.sandbox.columns import TypedInputs

_LONGEST_MESSAGE = 1000
# Rows are told apart at once below this, in two steps above it.
_FEW_ROWS = 5_000
_BATCH_BYTES = 8 << 20
# answers to rows that are evaluated together; what they are made of takes several times as much
_MOST_HELD_BYTES = 64 << 20
_CODES = {
    "time": "timeout",
    "system": "timeout",
    "memory": "memory_limit",
    "output": "result_too_large",
    "recursion": "code_error",
    "evaluator": "code_error",
}
_UNTRIED = CellError("not_tried", "Not tried: too many rows before it met a limit")
_TOO_LARGE = CellError("input_too_large", "The values that the code reads are too large to be handed to it")


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What became of rows: a JSON value each, or an error by place."""

    values: list[Any]
    errors: Mapping[int, CellError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SandboxedCode:
    """The evaluator of one language for one workspace; `where` says in errors what does not parse.

    Of an operation at most `most_timeouts` rows may run into the wall of time, and `most_limits` into any;
    what comes after them fails untried.
    """

    pool: Pool
    kind: Kind
    workspace_id: int
    where: str = "config.code"
    batch_rows: int = 5_000
    most_timeouts: int = 20
    most_limits: int = 500

    def inspect(self, code: str) -> Any:
        """Check that the code parses; return what its evaluator says of the columns that it reads.

        Raises:
            InvalidConfig: it does not parse; names line and position, from 1.
            Unguarded: nothing is evaluated on this machine.
            Unavailable: no worker became free.
        """
        # kept for the workspace: what is only parsed leaves nothing behind
        with self.pool.lease(self.kind, self.workspace_id) as worker:
            return _asked(worker, {"inspect": code}, self.where)

    @contextmanager
    def opened(self, code: Any) -> Iterator["Evaluation"]:
        """Evaluate code in a block, in a worker of its own; `code` is what its evaluator prepares.

        Raises:
            InvalidConfig: the code does not parse.
            Unguarded: nothing is evaluated on this machine.
            Unavailable: no worker became free.
        """
        with ExitStack() as lease:
            evaluation = Evaluation(self, code, lease)
            evaluation.start()
            yield evaluation


class Evaluation:
    """Code of one operation; what it met is counted over all its rows."""

    def __init__(self, evaluator: SandboxedCode, code: Any, lease: ExitStack) -> None:
        self._evaluator, self._code, self._lease = evaluator, code, lease
        self._worker: Worker | None = None
        self._timeouts = self._limits = 0
        self._heard: Callable[[int, int], None] | None = None
        self._told = (0, 0)
        self._held_bytes = 0

    def start(self) -> None:
        """Have a worker ready that took the code."""
        self._ready()

    def evaluate(
        self, columns: Mapping[str, Values], count: int, heard: Callable[[int, int], None] | None = None
    ) -> Evaluated:
        """Return what becomes of each of `count` rows, in order; `columns` are by their names in the code.

        `heard` is told after each batch how many more rows were completed and failed.

        Raises:
            TooMuchAtOnce: the values of so many rows are too long together; what was told is taken back.
            Unavailable: no worker became free.
        """
        self._heard, self._told, self._held_bytes = heard, (0, 0), 0
        # the library of frames is slow to load, and most who ask for this module only check code
        from storage.engine.sandbox.columns import Inputs, TypedInputs, by_type  # noqa: PLC0415

        inputs = Inputs(columns, count)
        if self._evaluator.kind.module != SQL.module:
            return self._rows(TypedInputs(inputs, ()))
        values: list[Any] = [None] * count
        errors: dict[int, CellError] = {}
        for group in by_type(inputs):
            found = self._rows(group)
            if group.rows is None:
                return found
            for at, value in zip(group.rows, found.values, strict=True):
                values[at] = value
            errors |= {group.rows[at]: error for at, error in found.errors.items()}
        return Evaluated(values, errors)

    def _rows(self, typed: "TypedInputs") -> Evaluated:
        sizes = _Sizes(self._evaluator.batch_rows)
        values: list[Any] = []
        errors: dict[int, CellError] = {}
        count = typed.inputs.count
        while len(values) < count:
            done = len(values)
            if self._given_up:
                errors |= dict.fromkeys(range(done, count), _UNTRIED)
                values += [None] * (count - done)
                break
            size = min(sizes.at(done), count - done)
            try:
                found, failed = self._batch(typed, done, size)
            except FrameTooLarge:
                if size > 1:
                    sizes.shrink(done, size, max(1, size // 4))
                    continue
                found, failed = [None], {0: _TOO_LARGE}
            except LimitReached as met:
                if size > 1:
                    sizes.shrink(done, size, 1 if size <= _FEW_ROWS else size // 40)
                    continue
                self._count(met)
                found, failed = (
                    [None],
                    {0: CellError(_CODES[met.limit], met.message[:1].upper() + met.message[1:])},
                )
            values += found
            errors |= {done + at: error for at, error in failed.items()}
            self._hear(len(found) - len(failed), len(failed))
            if self._held_bytes > _MOST_HELD_BYTES and count > 1:
                self._hear(-self._told[0], -self._told[1])
                raise TooMuchAtOnce
        return Evaluated(values, errors)

    def _hear(self, completed: int, failed: int) -> None:
        self._told = self._told[0] + completed, self._told[1] + failed
        if self._heard is not None:
            self._heard(completed, failed)

    @property
    def _given_up(self) -> bool:
        one = self._evaluator
        return self._timeouts >= one.most_timeouts or self._limits >= one.most_limits

    def _count(self, met: LimitReached) -> None:
        self._limits += 1
        self._timeouts += _CODES[met.limit] == "timeout"

    def _batch(self, typed: "TypedInputs", start: int, count: int) -> tuple[list[Any], dict[int, CellError]]:
        """Ask for the cells of a batch; return those that the worker had time for."""
        parts = typed.inputs.parts(start, count)
        size = sum(map(len, parts))
        if size > _BATCH_BYTES and count > 1:  # wide rows: what a worker makes of them takes much more memory
            count = max(1, count * _BATCH_BYTES // size)
            parts = typed.inputs.parts(start, count)
        header = {"rows": count, "names": list(typed.inputs.columns), "types": typed.types}
        worker = self._ready()
        answer = worker.ask_rows(header, parts)
        self._held_bytes += len(answer)
        try:
            return read_cells(answer, count)
        except Unreadable:
            raise worker.distrust() from None

    def _ready(self) -> Worker:
        """The operation's worker, replaced when it has ended or is spent, and prepared."""
        if self._worker is None or self._worker.spent or not self._worker.ready:
            self._lease.close()
            one = self._evaluator
            self._worker = self._lease.enter_context(one.pool.lease(one.kind, one.workspace_id, keep=False))
            _asked(self._worker, {"prepare": self._code}, one.where)
        return self._worker


class _Sizes:
    """How many rows a batch may have: fewer within a stretch where a limit was met."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._stretches: list[tuple[int, int]] = []  # the narrowest last

    def at(self, row: int) -> int:
        while self._stretches and self._stretches[-1][0] <= row:
            self._stretches.pop()
        if not self._stretches:
            return self._most
        end, size = self._stretches[-1]
        return min(size, end - row)

    def shrink(self, start: int, count: int, size: int) -> None:
        self._stretches.append((start + count, size))


def _asked(worker: Worker, request: dict[str, Any], where: str) -> Any:
    try:
        return worker.ask(request)
    except Refused as refused:
        _refuse(refused.problem, where)
    except LimitReached as met:
        raise LimitReached(met.limit, f"{where}: {met.message}") from None


def _refuse(problem: Mapping[str, Any], where: str) -> NoReturn:
    place = ", ".join(
        f"{name} {problem[name]}" for name in ("line", "position") if isinstance(problem.get(name), int)
    )
    why = str(problem.get("why"))[:_LONGEST_MESSAGE].encode("utf-8", "replace").decode()
    raise InvalidConfig(f"{where}: {place}: {why}" if place else f"{where}: {why}") from None
