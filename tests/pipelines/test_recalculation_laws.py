"""Whatever is edited, added, deleted, reconfigured and recalculated: a completed cell holds what it should.

Limits are made small, so that a few rows take every way that a million would.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.domain.keys import Principal
from storage.row_changes import add_rows, delete_rows
from storage.store import Store
from storage.verification import verify_sheet
from tests.recalculating import Bench, Counting

VALUES = st.sampled_from(["1", "2", "x", ""])
TARGETS = st.sampled_from(["1", "x"])
ACTIONS = st.one_of(
    st.tuples(st.just("edit"), st.sampled_from("AB"), st.integers(0, 9), VALUES),
    st.tuples(st.just("edit in run"), st.sampled_from("AB"), st.integers(0, 9), VALUES),
    st.tuples(st.just("add"), VALUES),
    st.tuples(st.just("add in run"), VALUES),
    st.tuples(st.just("delete"), st.integers(0, 9)),
    st.tuples(st.just("delete in run"), st.integers(0, 9)),
    st.tuples(st.just("target"), TARGETS),
    st.tuples(st.just("target in run"), TARGETS),
    st.tuples(st.just("run")),
    st.tuples(st.just("run all")),
    st.tuples(st.just("run rows"), st.lists(st.integers(0, 9), max_size=4)),
    st.tuples(st.just("force")),
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("storage.recalculation_commit.MOST_PATCHED", 2)
    monkeypatch.setattr("storage.recalculation_commit.MOST_ROWS_ONE_BY_ONE", 2)
    monkeypatch.setattr("storage.domain.staleness.MOST_ROWS_ONE_BY_ONE", 2)
    monkeypatch.setattr("storage.recalculation_jobs.CHUNK_ROWS", 3)
    monkeypatch.setattr("storage.recalculation_jobs.FEW_ROWS", 1)
    return


RUNS: dict[str, dict[str, Any]] = {
    "run": {},
    "run all": {"statuses": ()},
    "force": {"statuses": (), "force": True},
}


class Sheet:
    """A sheet whose columns Is (A equals a target), Num (B as a number) and Both are computed."""

    def __init__(self, store: Store, who: Principal) -> None:
        rows = [[str(n % 3), str(n % 2)] for n in range(8)]
        self.bench = Bench(store, who, ["A", "B"], rows)
        self.target = "1"
        self.bench.run(self.bench.add("Is", "comparison", sources=["A"], target="1").operation)
        number = {"operation": "parse_value", "value_type": "NUMBER"}
        self.bench.run(self.bench.add("Num", "composition", source="B", **number).operation)
        self.bench.run(
            self.bench.add("Both", "composition", sources=["Is", "Num"], operation="concat").operation
        )

    def act(self, action: tuple[Any, ...]) -> None:
        name, *rest = action
        bench, count = self.bench, len(self.bench.cells("A"))
        if name.endswith(" in run"):
            left = [(name.removesuffix(" in run"), *rest)]
            counted = Counting(lambda _: self.act(left.pop()) if left else None)
            bench.recalculate(counted.runners, statuses=(), force=True)
        elif name == "edit":
            if rest[1] < count:
                bench.edit(rest[0], rest[1], rest[2])
        elif name == "add":
            add_rows(bench.store, bench.who, **bench.place, values=[{bench.column("A").id: rest[0]}])
        elif name == "delete":
            if rest[0] < count > 1:
                delete_rows(bench.store, bench.who, **bench.place, row_indices=[rest[0]])
        elif name == "target":
            self.target = rest[0]
            bench.change("Is", config={"sources": ["A"], "target": rest[0]})
        elif name == "run rows":
            bench.recalculate(row_indices=sorted({row for row in rest[0] if row < count}))
        else:
            bench.recalculate(**RUNS[name])

    def check(self, *, whole: bool) -> None:
        bench = self.bench
        columns = {title: bench.cells(title) for title in ("A", "B", "Is", "Num", "Both")}
        for at, (a, b) in enumerate(zip(columns["A"], columns["B"], strict=True)):
            is_target = a.value == self.target
            number = int(b.value) if b.value in {"1", "2", "0"} else None
            bad = b.value not in {"1", "2", "0", ""}
            both = ("true" if is_target else "false") + ("" if number is None else str(number))
            for title, expected in (("Is", is_target), ("Num", number), ("Both", both)):
                cell = columns[title][at]
                if cell.state.status == "completed":
                    assert not (bad and title != "Is"), (title, at)
                    assert cell.value == expected, (title, at)
                elif cell.state.status == "failed":
                    assert bad, (title, at)
                assert not whole or cell.state.status == ("failed" if bad and title != "Is" else "completed")


@given(st.lists(ACTIONS, max_size=8))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_completed_cell_holds_what_its_inputs_give(
    store: Store, who: Principal, actions: list[tuple[Any, ...]]
) -> None:
    sheet = Sheet(store, who)
    for action in actions:
        sheet.act(action)
        sheet.check(whole=False)
    sheet.bench.recalculate()
    sheet.check(whole=True)
    assert verify_sheet(store, sheet.bench.sheet_no) == []
    counted = Counting()
    sheet.bench.recalculate(counted.runners, statuses=("stale",))
    assert counted.rows == 0
