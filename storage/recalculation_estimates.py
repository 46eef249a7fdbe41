"""What a recalculation would take: which cells it would visit, and what such cells took before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from storage.domain.columns import Column
from storage.domain.keys import Principal
from storage.domain.recalculations import Recalculation, Task, Wanted
from storage.engine.catalog import Connection
from storage.engine.rows.columns import select_columns
from storage.engine.rows.recalculations import select_recalculations
from storage.recalculations import Asked, plan_recalculation
from storage.sheets import require_sheet
from storage.store import Store

_PAGE = 20
_MOST_PAGES = 10


@dataclass(frozen=True, slots=True)
class Spent:
    """What cells of a column took, as far as its history goes back: only those that were computed count."""

    cells: int = 0
    price: float = 0.0
    tokens: int = 0
    seconds: float = 0.0

    def plus(self, task: Task) -> "Spent":
        """Add what one recalculation did."""
        computed = task.completed + task.failed - task.cached
        if not computed:
            return self
        return Spent(
            self.cells + computed,
            self.price + task.price,
            self.tokens + task.tokens,
            self.seconds + task.seconds,
        )


@dataclass(frozen=True, slots=True)
class Planned:
    """A recalculation that nobody has asked for yet: its columns in order of computation."""

    sheet_no: int
    wanted: Wanted
    tasks: Sequence[Task]
    columns: Mapping[int, Column]
    spent: Mapping[int, Spent] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a column would take, by its own history.

    `cached_count` cells need no computing: they hold what they should, or the answer is known.
    `unknown_count` read cells that are to be computed first, so that nobody can tell.
    """

    column: Column
    cell_count: int
    cached_count: int
    unknown_count: int
    price: float
    tokens: int
    seconds: float

    @classmethod
    def of(
        cls, column: Column, cell_count: int, cached_count: int, unknown_count: int, spent: Spent
    ) -> "Estimate":
        share = (cell_count - cached_count) / spent.cells if spent.cells else 0.0
        return cls(
            column,
            cell_count,
            cached_count,
            unknown_count,
            spent.price * share,
            round(spent.tokens * share),
            spent.seconds * share,
        )


def get_planned(store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, asked: Asked) -> Planned:
    """Return what a recalculation would visit, and what its columns took before; starts nothing.

    Raises:
        NotFound: no such sheet or column.
        WrongColumnType: a column is text.
        Invalid: a row index is out of range.
    """
    with store.catalog.read() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        wanted, tasks = plan_recalculation(connection, store, sheet, asked)
        columns = {column.no: column for column in select_columns(connection, sheet.no)}
        spent = _spent(connection, sheet.no, {task.column_no for task in tasks})
    return Planned(sheet.no, wanted, tasks, columns, spent)


def _spent(connection: Connection, sheet_no: int, column_nos: set[int]) -> dict[int, Spent]:
    """Return what these columns took in the last recalculations, further back for those seldom computed."""
    found: dict[int, Spent] = {}
    after: int | None = None
    for _ in range(_MOST_PAGES):
        page = select_recalculations(connection, sheet_no, after=after, descending=True, limit=_PAGE)
        _add(found, page)
        if len(page) < _PAGE or all(no in found for no in column_nos):
            break
        after = page[-1].operation.no
    return found


def _add(found: dict[int, Spent], page: Sequence[Recalculation]) -> None:
    for recalculation in page:
        for task in recalculation.tasks:
            spent = found.get(task.column_no, Spent()).plus(task)
            if spent.cells:
                found[task.column_no] = spent
