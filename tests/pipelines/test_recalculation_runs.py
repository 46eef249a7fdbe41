"""Recalculation while a run is under way: what changes meanwhile, what is cancelled, what waits or dies."""

from collections.abc import Sequence

import pytest

from storage.column_changes import delete_column
from storage.domain.errors import Unavailable
from storage.domain.keys import Principal
from storage.imports import cancel_operation
from storage.operations import ClaimRefused, raise_attempt
from storage.row_changes import add_rows, delete_rows
from storage.store import Store
from storage.verification import verify_sheet
from tests.recalculating import MANY, Bench, Counting


@pytest.mark.parametrize("size", ["bench", "large"])
def test_edits_during_a_run_leave_just_their_cells_stale(size: str, request: pytest.FixtureRequest) -> None:
    bench: Bench = request.getfixturevalue(size)
    edited: list[int] = []

    def edit(row_nos: Sequence[int]) -> None:
        if not edited:
            edited.append(bench.edit("A", 1, "changed"))

    counted = Counting(edit)
    bench.run(bench.add("Same", "comparison", sources=["A", "B"]).operation, counted.runners)
    # the cell was queued for the run, and stale beneath
    assert edited == [0]
    assert bench.statuses("Same")[:3] == ["completed", "stale", "completed"]
    bench.recalculate()
    assert bench.values("Same")[1] is False
    assert set(bench.statuses("Same")) == {"completed"}


@pytest.mark.parametrize("size", ["bench", "large"])
def test_rows_that_come_and_go_during_a_run(size: str, request: pytest.FixtureRequest, store: Store) -> None:
    bench: Bench = request.getfixturevalue(size)
    count = len(bench.cells("A", 0, MANY))
    done: list[bool] = []

    def change(_: Sequence[int]) -> None:
        if not done:
            done.append(True)
            delete_rows(store, bench.who, **bench.place, row_indices=[0])
            add_rows(store, bench.who, **bench.place, values=[{bench.column("A").id: "new"}])

    counted = Counting(change)
    bench.run(bench.add("Copy", "composition", source="A").operation, counted.runners)
    values = [cell.value for cell in bench.cells("A", 0, MANY)]
    cells = bench.cells("Copy", 0, MANY)
    assert [cell.value for cell in cells[:-1]] == values[:-1]
    assert [cell.state.status for cell in cells] == ["completed"] * (count - 1) + ["stale"]
    assert verify_sheet(store, bench.sheet_no) == []
    bench.recalculate()
    assert bench.cells("Copy", count - 1, 1)[0].value == "new"


def test_a_configuration_changed_during_a_run_leaves_all_stale(bench: Bench) -> None:
    done: list[bool] = []

    def change(_: Sequence[int]) -> None:
        if not done:
            done.append(True)
            bench.change("Same", config={"sources": ["A"], "target": "1"})

    bench.run(bench.add("Same", "comparison", sources=["A", "B"]).operation, Counting(change).runners)
    assert bench.statuses("Same") == ["stale"] * 3
    bench.recalculate()
    assert bench.values("Same") == [True, False, False]


def test_a_column_deleted_during_a_run_is_passed_over(bench: Bench, store: Store, who: Principal) -> None:
    done: list[bool] = []

    def change(_: Sequence[int]) -> None:
        if not done:
            done.append(True)
            delete_column(store, who, **bench.place, column_id=bench.column("Same").id)

    added = bench.add("Same", "comparison", sources=["A", "B"])
    bench.run(added.operation, Counting(change).runners)
    assert added.operation is not None
    assert bench.poll(added.operation).operation.status == "completed"
    assert verify_sheet(store, bench.sheet_no) == []


def test_a_cancelled_run_publishes_nothing_more(bench: Bench, store: Store, who: Principal) -> None:
    added = bench.add("Same", "comparison", sources=["A", "B"])
    assert added.operation is not None
    operation_id = added.operation.id

    def cancel(_: Sequence[int]) -> None:
        cancel_operation(store, who, **bench.place, operation_id=operation_id)

    with pytest.raises(ClaimRefused):
        bench.run(added.operation, Counting(cancel).runners)
    assert bench.statuses("Same") == ["stale"] * 3
    found = bench.poll(added.operation)
    assert (found.operation.status, found.pending_count) == ("cancelled", 3)


def test_a_second_recalculation_waits_for_the_first(bench: Bench, store: Store) -> None:
    first = bench.add("One", "composition", source="A").operation
    second = bench.add("Two", "composition", source="One").operation
    assert first is not None
    assert second is not None
    assert (first.lane, second.lane) == ("short", "wait")
    order: list[str] = []
    ran: list[bool] = []

    def run_first() -> None:
        if not ran:
            ran.append(True)
            order.append("first")
            bench.run(first)

    import pipelines.recalculation as work  # noqa: PLC0415

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work.time, "sleep", lambda _: run_first())
        bench.run(second)
        order.append("second")
    assert order == ["first", "second"]
    assert bench.values("Two") == ["1", "2", "3"]


def test_answers_that_are_dear_are_kept_for_the_next_attempt(bench: Bench, store: Store) -> None:
    added = bench.add("Copy", "composition", source="A")
    assert added.operation is not None
    calls: list[int] = []

    def die(row_nos: Sequence[int]) -> None:
        calls.extend(row_nos)
        if len(calls) == 3:
            raise Unavailable("gone")

    counted = Counting(die, keeps=True, chunk_rows=1)
    with pytest.raises(Unavailable):
        _attempt(bench, added.operation.no, 1, counted)
    again = Counting(keeps=True, chunk_rows=1)
    _attempt(bench, added.operation.no, 2, again)
    assert (counted.rows, again.rows) == (3, 1)
    assert bench.values("Copy") == ["1", "2", "3"]
    assert bench.poll(added.operation).completed_count == 3


def _attempt(bench: Bench, no: int, attempt: int, counted: Counting) -> None:
    """Run an attempt as a process does that may die in it: nobody is told."""
    from pipelines.recalculation import recalculate  # noqa: PLC0415

    if attempt > 1:
        assert raise_attempt(bench.store, no, attempt - 1)
    recalculate(bench.store, no, attempt, f"run-{attempt}", lambda _: None, counted.runners)
