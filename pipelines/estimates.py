"""What a recalculation would take, told before it is started: cells that need no computing are found.

They are looked for as its run would look: by the hashes of what their columns read, and among the known
results of models. What reads a cell that is to be computed first is unknown until then.
"""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from uuid import UUID

from pipelines.columns.hashing import config_digest
from pipelines.columns.protocol import ColumnContext, Keys
from pipelines.columns.registry import RUNNERS
from pipelines.columns.visits import chunk_at, plan_block
from storage.domain.errors import PromptlakeError
from storage.domain.keys import Principal
from storage.domain.recalculations import Task
from storage.model_results import known_keys
from storage.recalculation_estimates import Estimate, Planned, Spent, get_planned
from storage.recalculation_jobs import Block, Reading, blocks, is_unchanged, read_column
from storage.recalculations import Asked
from storage.store import Store

LOOKS_FOR_S = 3.0
"""So long cells are looked at; of those that are left as many are cached as of those that were seen."""
_CHUNK_ROWS = 2_048
_MOST_MOVING = 100_000


@dataclass(slots=True)
class _Seen:
    """Of the cells of a column that were looked at."""

    cells: int = 0
    cached: int = 0
    unknown: int = 0


@dataclass(slots=True)
class _Look:
    """One look at all columns of a recalculation, in order of computation.

    `moving` are the rows, by column, that are completed and would be computed again (None: all of them);
    `keys` is what models would have been asked by then.
    """

    store: Store
    who: Principal
    planned: Planned
    until: float
    moving: dict[int, set[int] | None] = field(default_factory=dict)
    keys: set[bytes] = field(default_factory=set)

    def column(self, task: Task) -> Estimate:
        column = self.planned.columns[task.column_no]
        spent = self.planned.spent.get(task.column_no, Spent())
        seen = _Seen()
        reading = read_column(self.store, self.planned.sheet_no, self.planned.wanted, task)
        if reading is not None and task.cell_count:
            seen = self._seen(reading)
        scale = task.cell_count / seen.cells if seen.cells else 0.0
        cached = min(task.cell_count, round(seen.cached * scale))
        # what nobody looked at is unknown as well
        unknown = round(seen.unknown * scale) if seen.cells else task.cell_count
        return Estimate.of(column, task.cell_count, cached, min(unknown, task.cell_count - cached), spent)

    def _seen(self, reading: Reading) -> _Seen:
        column, seen = reading.column, _Seen()
        kind = RUNNERS[column.runner]
        if reading.missing is not None:
            return _Seen(reading.visited)
        if reading.wanted.force and not kind.keeps:
            # all of its cells are computed, whatever they hold
            self.moving[column.no] = None
            return _Seen(reading.visited)
        try:
            pinned = kind.pin(ColumnContext(self.store, self.who, column))
            context = ColumnContext(self.store, self.who, column, pinned)
            digest = config_digest(column, kind.engine(column), pinned)
            if not self._moves(reading) and is_unchanged(self.store, reading, digest):
                return _Seen(reading.visited, reading.visited)
            with kind.keys(context) as keys, closing(blocks(self.store, reading)) as found:
                for block in found:
                    if time.monotonic() > self.until:
                        break
                    if block.places:
                        self._look_at(seen, reading, block, digest, keys)
        except PromptlakeError:
            # its cells will fail, or nobody can tell now
            self.moving[column.no] = None
            return _Seen(reading.visited, 0, reading.visited)
        return seen

    def _moves(self, reading: Reading) -> bool:
        return any(one.no in self.moving for one in reading.sources)

    def _look_at(self, seen: _Seen, reading: Reading, block: Block, digest: str, keys: Keys) -> None:
        plan = plan_block(reading, block, digest)
        moved = self._moved(reading, block)
        unchanged = [place for place in plan.unchanged.to_list() if place not in moved]
        to_run = [place for place in plan.run_at.to_list() if place not in moved]
        failing = sum(place not in moved for place in plan.reasons)
        self._note_moving(reading, block, unchanged)
        seen.cells += len(block.places)
        seen.cached += len(unchanged)
        seen.unknown += len(block.places) - len(unchanged) - len(to_run) - failing
        for first in range(0, len(to_run), _CHUNK_ROWS):
            if time.monotonic() > self.until:
                seen.cells -= len(to_run) - first
                return
            some = to_run[first : first + _CHUNK_ROWS]
            seen.cached += self._count_known(keys(chunk_at(block, plan.columns, some)), reading)

    def _moved(self, reading: Reading, block: Block) -> set[int]:
        """Return the places of a block that read what would be computed again before."""
        found: set[int] = set()
        for one in reading.sources:
            if one.no in self.moving:
                rows = self.moving[one.no]
                found |= {at for at, row in enumerate(block.row_nos) if rows is None or row in rows}
        return found

    def _note_moving(self, reading: Reading, block: Block, unchanged: Sequence[int]) -> None:
        completed = (block.own.statuses == "completed").arg_true().to_list()
        rows = {block.row_nos[place] for place in set(completed).difference(unchanged)}
        known = self.moving.get(reading.column.no, set())
        if rows and known is not None:
            known = known | rows
            self.moving[reading.column.no] = known if len(known) <= _MOST_MOVING else None

    def _count_known(self, keys: Sequence[bytes | None], reading: Reading) -> int:
        """Count the rows whose answer is known, or asked for by a row before."""
        asked = list({key for key in keys if key is not None} - self.keys)
        known = set() if reading.wanted.force else known_keys(self.store, self.who, asked)
        count = 0
        for key in keys:
            if key is not None:
                count += key in known or key in self.keys
                self.keys.add(key)
        return count


def estimate(store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, asked: Asked) -> list[Estimate]:
    """Return what a recalculation would do, by column in order of computation; starts nothing.

    Raises:
        NotFound: no such sheet or column.
        WrongColumnType: a column is text.
        Invalid: a row index is out of range.
    """
    planned = get_planned(store, who, table_id=table_id, sheet_id=sheet_id, asked=asked)
    look = _Look(store, who, planned, time.monotonic() + LOOKS_FOR_S)
    return [look.column(task) for task in planned.tasks]
