"""Sheets with computed columns, recalculated by hand as a run does it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

from pipelines.columns.protocol import RunContext, Runner, RunnerKind
from pipelines.columns.registry import RUNNERS
from pipelines.recalculation import recalculate
from pipelines.work import Outcome, run_operation
from storage.cells import edit_cell
from storage.column_changes import ColumnChange, ColumnUpdated, update_column_of
from storage.domain.cells import Cell
from storage.domain.columns import Column
from storage.domain.keys import Principal
from storage.domain.operations import RECALCULATE, Operation
from storage.domain.paging import PageRequest
from storage.domain.recalculations import Recalculation
from storage.domain.results import Answers, Chunk
from storage.domain.sheets import Sheet
from storage.engine.rows.columns import select_columns
from storage.new_columns import ColumnCreated, NewColumn, create_column
from storage.recalculations import Asked, get_recalculation, start_recalculation
from storage.rows import list_rows
from storage.store import Store
from storage.tables import create_table
from tests.importing import imported_sheet

ROWS = [["1", "1"], ["2", "x"], ["3", "3"]]
MANY = 12_000


class Bench:
    """A sheet under test."""

    def __init__(
        self,
        store: Store,
        who: Principal,
        titles: Sequence[str],
        rows: Sequence[Sequence[Any]],
        table_id: UUID | None = None,
    ) -> None:
        self.store, self.who = store, who
        chosen = table_id or create_table(store, who).id
        sheet: Sheet = imported_sheet(store, who, chosen, titles, rows)
        self.place: dict[str, UUID] = {"table_id": chosen, "sheet_id": sheet.id}
        self.sheet_no = sheet.no

    @classmethod
    def of(cls, store: Store, who: Principal, table_id: UUID, sheet_id: UUID, sheet_no: int) -> "Bench":
        """Take a sheet that is there."""
        found = cls.__new__(cls)
        found.store, found.who, found.sheet_no = store, who, sheet_no
        found.place = {"table_id": table_id, "sheet_id": sheet_id}
        return found

    def add(self, title: str, kind: str, **config: Any) -> ColumnCreated:
        new = NewColumn(title, kind, config)
        return create_column(self.store, self.who, **self.place, new=new)

    def run(self, operation: Operation | None, runners: Mapping[str, RunnerKind] = RUNNERS) -> Outcome:
        assert operation is not None
        work = {
            RECALCULATE: lambda store, no, attempt, run_id, report: recalculate(
                store, no, attempt, run_id, report, runners
            )
        }
        run_id = f"run-{operation.no}-{operation.attempt}"
        return run_operation(work, self.store, operation.no, operation.attempt, run_id, lambda _: None)

    def start(self, **asked: Any) -> Recalculation:
        return start_recalculation(self.store, self.who, **self.place, asked=Asked(**asked))

    def recalculate(self, runners: Mapping[str, RunnerKind] = RUNNERS, **asked: Any) -> Recalculation:
        started = self.start(**asked)
        if not started.operation.ended:
            self.run(started.operation, runners)
        return self.poll(started.operation)

    def poll(self, operation: Operation) -> Recalculation:
        return get_recalculation(self.store, self.who, **self.place, operation_id=operation.id)

    def cells(self, title: str, start: int = 0, count: int = 1000) -> list[Cell]:
        found: list[Cell] = []
        cursor = None
        while len(found) < start + count:
            page = list_rows(self.store, self.who, **self.place, request=PageRequest(1000, "asc", cursor))
            (at,) = [place for place, column in enumerate(page.columns) if column.title == title]
            found += [row.cells[at] for row in page.page.items]
            cursor = page.page.next_cursor
            if cursor is None:
                break
        return found[start : start + count]

    def edit(self, title: str, row: int, value: Any) -> int:
        """Write a text cell; return how many cells that made stale."""
        (cell,) = self.cells(title, row, 1)
        edited = edit_cell(self.store, self.who, **self.place, cell_id=cell.id, value=value)
        return edited.stale_count

    def column(self, title: str) -> Column:
        with self.store.catalog.read() as connection:
            (found,) = [one for one in select_columns(connection, self.sheet_no) if one.title == title]
        return found

    def change(self, title: str, /, **changes: Any) -> ColumnUpdated:
        return update_column_of(
            self.store,
            self.who,
            **self.place,
            column_id=self.column(title).id,
            change=ColumnChange(**changes),
        )

    def values(self, title: str) -> list[Any]:
        return [cell.value for cell in self.cells(title)]

    def statuses(self, title: str) -> list[str]:
        return [cell.state.status for cell in self.cells(title)]

    def errors(self, title: str) -> list[str | None]:
        return [cell.state.error for cell in self.cells(title)]


class Counting:
    """Runners that count the rows that they are given; `before` is called with each chunk's row numbers."""

    def __init__(self, before: Callable[[Sequence[int]], None] = lambda _: None, **changes: Any) -> None:
        self.rows = 0
        self.before = before
        self.runners = {name: replace(self._counted(kind), **changes) for name, kind in RUNNERS.items()}

    def _counted(self, kind: RunnerKind) -> RunnerKind:
        outer = self

        class Counted:
            def __init__(self, runner: Runner) -> None:
                self.runner = runner

            def compute(self, chunk: Chunk) -> Iterable[Answers]:
                outer.rows += len(chunk)
                outer.before(chunk.row_nos)
                return self.runner.compute(chunk)

        @contextmanager
        def opened(context: RunContext) -> Iterator[Runner]:
            with kind.open(context) as runner:
                yield Counted(runner)

        return replace(kind, open=opened)
