"""Recalculations: what one is to do, how far it is, and how its cells read meanwhile."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from storage.domain.cells import CellState
from storage.domain.operations import ENDED, QUEUED, RUNNING, Operation

WAITS, RUNS, DONE = "queued", "running", "done"
_ASKS_MODELS = "asks_models"
ANY_STATUS = ("stale", "failed")
"""Which cells a recalculation visits when it is not told."""


@dataclass(frozen=True, slots=True)
class Task:
    """One column of a recalculation, and what came of it; `seconds` of computing, `tokens` in and out.

    `pinned`: which version of what it names outside of sheets (a prompt) its first attempt resolved.
    """

    column_no: int
    cell_count: int
    state: str = WAITS
    completed: int = 0
    failed: int = 0
    cached: int = 0
    seconds: float = 0.0
    price: float = 0.0
    tokens: int = 0
    pinned: str = ""

    @property
    def pending(self) -> int:
        return max(0, self.cell_count - self.completed - self.failed)

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Task.__slots__}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which cells: of these columns, in order of computation; of these rows (None: all); by status.

    No statuses: every cell. `force`: also cells whose value would be the same.
    """

    column_nos: tuple[int, ...]
    row_nos: tuple[int, ...] | None = None
    statuses: tuple[str, ...] = ANY_STATUS
    force: bool = False
    budget: float | None = None

    def to_json(self, *, asks_models: bool = False) -> dict[str, Any]:
        return asdict(self) | {_ASKS_MODELS: asks_models}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Wanted":
        rows = value["row_nos"]
        return cls(
            tuple(value["column_nos"]),
            None if rows is None else tuple(rows),
            tuple(value["statuses"]),
            value["force"],
            value["budget"],
        )

    def visits(self, status: str) -> bool:
        """Say whether a cell of a status is visited."""
        return not self.statuses or status in self.statuses


def asks_models(operation: Operation) -> bool:
    """Say whether a recalculation was queued for columns that ask models."""
    return bool(operation.spec.get(_ASKS_MODELS))


@dataclass(frozen=True, slots=True)
class Recalculation:
    """A recalculation as a client polls it."""

    operation: Operation
    wanted: Wanted
    tasks: tuple[Task, ...]

    @property
    def kept(self) -> tuple[Task, ...]:
        """The tasks as far as they count: an operation that ended keeps nothing of a column under way."""
        if not self.operation.ended:
            return self.tasks
        return tuple(one if one.state == DONE else Task(one.column_no, one.cell_count) for one in self.tasks)

    @property
    def cell_count(self) -> int:
        return sum(task.cell_count for task in self.tasks)

    @property
    def completed_count(self) -> int:
        return sum(task.completed for task in self.kept)

    @property
    def failed_count(self) -> int:
        return sum(task.failed for task in self.kept)

    @property
    def cached_count(self) -> int:
        return sum(task.cached for task in self.kept)

    @property
    def pending_count(self) -> int:
        return sum(task.pending for task in self.kept)

    @property
    def status_counts(self) -> dict[str, int]:
        """Count its cells by status; those that an ended one left are as they were before."""
        counts = {"completed": self.completed_count, "failed": self.failed_count}
        for task in self.kept:
            status = "stale" if self.operation.ended else RUNNING if task.state == RUNS else QUEUED
            counts[status] = counts.get(status, 0) + task.pending
        return {status: count for status, count in counts.items() if count}


class Live:
    """How cells read while recalculations are under way: what they will compute is queued or running.

    Nothing of it is stored, so that a cell is at once as it was before when its operation is cancelled.
    """

    def __init__(self, running: Sequence[Recalculation]) -> None:
        self._tasks: dict[int, list[tuple[Recalculation, Task, frozenset[int] | None]]] = {}
        for one in running:
            rows = None if one.wanted.row_nos is None else frozenset(one.wanted.row_nos)
            for task in one.tasks:
                if task.state != DONE and one.operation.status not in ENDED:
                    self._tasks.setdefault(task.column_no, []).append((one, task, rows))

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def has(self, column_no: int) -> bool:
        return column_no in self._tasks

    def state(self, column_no: int, row_no: int, state: CellState) -> CellState:
        """Return a cell's state as a reader sees it now."""
        for one, task, rows in self._tasks.get(column_no, ()):
            if (rows is None or row_no in rows) and one.wanted.visits(state.status):
                status: Any = RUNNING if task.state == RUNS else QUEUED
                return replace(state, status=status, execution_id=one.operation.id)
        return state
