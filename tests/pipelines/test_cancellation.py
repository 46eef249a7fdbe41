"""A recalculation is cancelled in whatever state it is, once; what is committed stays."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import pipelines.recalculation as work
from pipelines.recalculation import recalculate
from storage.domain.errors import Conflict, Unavailable
from storage.domain.keys import Principal
from storage.imports import cancel_operation
from storage.operations import ClaimRefused, claim, settle_ended_run
from storage.store import Store
from storage.verification import verify_sheet
from tests.recalculating import Bench, Counting

DONE, STALE = ["completed"] * 2, ["stale"] * 2


@pytest.fixture
def bench(store: Store, who: Principal) -> Bench:
    """A column computed once, and one that reads it, both stale now."""
    bench = Bench(store, who, ["A"], [["1"], ["2"]])
    for title, source in (("One", "A"), ("Two", "One")):
        bench.run(bench.add(title, "composition", source=source).operation)
    for row, value in enumerate(("x", "y")):
        bench.edit("A", row, value)
    return bench


def cancel(bench: Bench, operation: Any) -> None:
    cancel_operation(bench.store, bench.who, **bench.place, operation_id=operation.id)


def attempt(bench: Bench, operation: Any, counted: Counting, number: int = 1) -> None:
    recalculate(bench.store, operation.no, number, f"run-{number}", lambda _: None, counted.runners)


def ends(bench: Bench, operation: Any, one: list[str], two: list[str]) -> None:
    """Check that it ended cancelled, that no run can begin it, and how its cells are."""
    found = bench.poll(operation)
    assert found.operation.status == "cancelled"
    assert (bench.statuses("One"), bench.statuses("Two")) == (one, two)
    assert found.completed_count == [*one, *two].count("completed")
    with pytest.raises(Conflict):
        cancel(bench, operation)
    idle = Counting()
    with pytest.raises(ClaimRefused):
        attempt(bench, operation, idle)
    assert idle.rows == 0
    assert verify_sheet(bench.store, bench.sheet_no) == []
    # nothing is left behind that the next one would trip over
    assert bench.recalculate().operation.status == "completed"
    assert bench.values("Two") == ["x", "y"]


def test_queued(bench: Bench) -> None:
    operation = bench.start().operation
    cancel(bench, operation)
    ends(bench, operation, STALE, STALE)


def test_waiting_for_another_of_its_sheet(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = bench.start().operation, bench.start().operation

    def instead_of_waiting(_: float) -> None:
        cancel(bench, second)

    monkeypatch.setattr(work.time, "sleep", instead_of_waiting)
    with pytest.raises(ClaimRefused):
        attempt(bench, second, Counting())
    cancel(bench, first)
    ends(bench, second, STALE, STALE)


@pytest.mark.parametrize(
    ("column", "one", "two"), [(1, STALE, STALE), (2, DONE, STALE)], ids=["first column", "second column"]
)
def test_running(bench: Bench, column: int, one: list[str], two: list[str]) -> None:
    operation = bench.start().operation
    chunks: list[Sequence[int]] = []

    def before(rows: Sequence[int]) -> None:
        chunks.append(rows)
        if len(chunks) == column:
            cancel(bench, operation)

    with pytest.raises(ClaimRefused):
        attempt(bench, operation, Counting(before))
    ends(bench, operation, one, two)


def test_between_two_attempts(bench: Bench) -> None:
    operation = bench.start().operation
    chunks: list[Sequence[int]] = []

    def before(rows: Sequence[int]) -> None:
        chunks.append(rows)
        if len(chunks) == 2:
            raise Unavailable("gone")

    with pytest.raises(Unavailable):
        attempt(bench, operation, Counting(before))
    settle_ended_run(bench.store, operation.no, 1, "run-1", cancelled=False)
    assert bench.poll(operation).operation.status == "queued"
    cancel(bench, operation)
    with pytest.raises(ClaimRefused):
        attempt(bench, operation, Counting(), 2)
    ends(bench, operation, DONE, STALE)


def test_its_run_cancelled_and_not_itself(bench: Bench) -> None:
    operation = bench.start().operation
    claim(bench.store, operation.no, 1, "run-1")
    settle_ended_run(bench.store, operation.no, 1, "run-1", cancelled=True)
    ends(bench, operation, STALE, STALE)


@pytest.mark.parametrize("ended", ["completed", "failed"])
def test_what_has_ended_is_not_cancelled(bench: Bench, ended: str) -> None:
    operation = bench.start().operation

    def broken(_: Sequence[int]) -> None:
        raise Unavailable("the disk is full")

    before: Callable[[Sequence[int]], None] = broken if ended == "failed" else lambda _: None
    if ended == "failed":
        with pytest.raises(Unavailable):
            bench.run(operation, Counting(before).runners)
    else:
        bench.run(operation)
    with pytest.raises(Conflict):
        cancel(bench, operation)
    assert bench.poll(operation).operation.status == ended
