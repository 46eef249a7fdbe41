"""Columns that do not read each other are computed side by side, and share limits, money and the end."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.columns.protocol import RunContext, Runner, RunnerKind
from pipelines.columns.registry import RUNNERS
from pipelines.side_by_side import SideBySide
from storage.domain.errors import Unavailable
from storage.domain.graph import chosen_sources
from storage.domain.keys import Principal
from storage.domain.results import Answers, Chunk
from storage.imports import cancel_operation
from storage.operations import ClaimRefused
from storage.store import Store
from storage.verification import verify_sheet
from tests.model_server import ModelServer
from tests.recalculating import Bench

GPT = {"provider": "openai", "model": "gpt-4o-mini"}
LANES = {"even": 2, "odd": 1}


@pytest.fixture
def bench(store: Store, who: Principal) -> Bench:
    return Bench(store, who, ["A", "B"], [["1", "1"], ["2", "x"], ["3", "3"]])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer(delay_s=0.02) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def meeting(before: Callable[[str], None]) -> dict[str, RunnerKind]:
    """Runners that call `before` with the title of their column at each chunk."""

    def changed(kind: RunnerKind) -> RunnerKind:
        @contextmanager
        def opened(context: RunContext) -> Iterator[Runner]:
            class Met:
                def compute(self, chunk: Chunk) -> Iterable[Answers]:
                    before(context.column.title)
                    return inner.compute(chunk)

            with kind.open(context) as inner:
                yield Met()

        return replace(kind, open=opened)

    return {name: changed(kind) for name, kind in RUNNERS.items()}


def independent(bench: Bench, *titles: str) -> None:
    for title in titles:
        bench.add(title, "composition", source="A")
    _drop_queue(bench)


def _drop_queue(bench: Bench) -> None:
    """Forget the computations that adding columns asked for."""
    from storage.operations import list_unended  # noqa: PLC0415

    for one in list_unended(bench.store):
        cancel_operation(bench.store, bench.who, **bench.place, operation_id=one.id)


def test_columns_that_do_not_read_each_other_are_computed_at_once(bench: Bench, store: Store) -> None:
    independent(bench, "One", "Two")
    bench.add("Both", "comparison", sources=["One", "Two"])
    _drop_queue(bench)
    met = threading.Barrier(2)
    order: list[str] = []

    def before(title: str) -> None:
        if title != "Both":
            # neither goes on before the other has begun
            met.wait(10)
        order.append(title)

    found = bench.recalculate(meeting(before))
    assert (found.operation.status, found.completed_count) == ("completed", 9)
    assert order[2] == "Both"
    assert bench.values("Both") == [True] * 3
    assert bench.values("One") == bench.values("Two") == ["1", "2", "3"]
    assert verify_sheet(store, bench.sheet_no) == []


def test_what_is_cancelled_ends_in_all_columns_and_publishes_nothing(bench: Bench) -> None:
    independent(bench, "One", "Two")
    operation = bench.start().operation
    met = threading.Barrier(2)

    def before(title: str) -> None:
        met.wait(10)
        if title == "One":
            cancel_operation(bench.store, bench.who, **bench.place, operation_id=operation.id)
        met.wait(10)

    with pytest.raises(ClaimRefused):
        bench.run(operation, meeting(before))
    assert bench.statuses("One") == bench.statuses("Two") == ["stale"] * 3
    assert bench.poll(operation).status_counts == {"stale": 6}


def test_a_column_that_breaks_the_run_stops_the_others(bench: Bench) -> None:
    independent(bench, "One", "Two", "Three", "Four", "Five")
    operation = bench.start().operation
    begun: list[str] = []

    def before(title: str) -> None:
        begun.append(title)
        if title == "One":
            raise Unavailable("The disk is full")
        time.sleep(0.2)

    with pytest.raises(Unavailable):
        bench.run(operation, meeting(before))
    assert bench.poll(operation).operation.status == "failed"
    # at most the one beside it, which was under way; none was begun after
    assert len(begun) <= 2


def test_model_columns_keep_the_limit_together_and_ask_nothing_twice(
    store: Store, who: Principal, server: ModelServer
) -> None:
    few = replace(store, settings=replace(store.settings, model_calls=3))
    bench = Bench(few, who, ["Q"], [[f"q {n}"] for n in range(40)])
    for title, prompt in (("One", "{Q}"), ("Two", "{Q}"), ("Three", "other {Q}")):
        bench.add(title, "llm", prompt=prompt, engine=GPT)
    _drop_queue(bench)
    found = bench.recalculate()
    assert (found.operation.status, found.completed_count, found.cached_count) == ("completed", 120, 40)
    assert len(server.calls) == 80
    assert set(server.calls.values()) == {1}
    assert server.most_open == 3
    assert bench.values("One") == bench.values("Two") == [f"q {n}" for n in range(40)]


@pytest.mark.parametrize("most", [0.0005, 1.0])
def test_a_budget_is_one_for_all_columns(
    store: Store, who: Principal, server: ModelServer, most: float
) -> None:
    bench = Bench(store, who, ["Q"], [[f"q {n}"] for n in range(60)])
    # at most 100 tokens an answer; some calls are reserved at once that cost far less in the end
    engine = GPT | {"parameters": {"max_tokens": 100}}
    for title in ("One", "Two", "Three"):
        bench.add(title, "llm", prompt=title + " {Q}", engine=engine)
    _drop_queue(bench)
    found = bench.recalculate(budget=most)
    price = sum(task.price for task in found.tasks)
    each = 10 * 0.15e-6 + 5 * 0.6e-6
    assert price == pytest.approx(each * server.calls.total())
    assert price <= most
    if most == 1.0:
        assert found.operation.status == "completed"
        return
    assert (found.operation.status, found.operation.message) == ("cancelled", "budget reached")
    # what calls reserved and did not need was spent on others: the next might not have been covered
    assert price > most - 2 * 100 * 0.6e-6
    kept = [title for title in ("One", "Two", "Three") for one in bench.statuses(title) if one == "completed"]
    assert len(kept) == server.calls.total()


Graph = dict[int, frozenset[int]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    count = draw(st.integers(1, 12))
    return {
        node: frozenset(draw(st.sets(st.integers(0, node - 1)))) if node else frozenset()
        for node in range(count)
    }


@settings(deadline=None, max_examples=60)
@given(graphs(), st.integers(1, 4))
def test_each_is_done_once_behind_what_it_waits_for_and_within_limits(behind: Graph, most: int) -> None:
    lock = threading.Lock()
    open_now: list[int] = []
    done: list[int] = []

    def work(node: int) -> int:
        with lock:
            assert behind[node] <= set(done)
            open_now.append(node)
            assert len(open_now) <= most
            assert sum(one % 2 for one in open_now) <= LANES["odd"]
            assert sum(one % 2 == 0 for one in open_now) <= LANES["even"]
        with lock:
            open_now.remove(node)
            done.append(node)
        return node

    heard: list[int] = []

    def ended(node: int) -> bool:
        heard.append(node)
        return True

    lane_of: Callable[[int], str] = lambda node: "odd" if node % 2 else "even"  # noqa: E731
    assert SideBySide[int, int](behind, lane_of, LANES, most).run(work, ended, threading.Event())
    assert sorted(done) == sorted(heard) == sorted(behind)


@given(graphs(), st.sets(st.integers(0, 11)))
def test_columns_stand_behind_chosen_ones_also_through_others(reads: Graph, wanted: set[int]) -> None:
    chosen: Sequence[int] = sorted(wanted & reads.keys())
    found = chosen_sources(reads, chosen)

    def nearest(node: int) -> set[int]:
        return {reached for one in reads[node] for reached in ({one} if one in wanted else nearest(one))}

    assert found == {node: frozenset(nearest(node)) for node in chosen}


def test_nothing_begins_after_the_end_was_said() -> None:
    begun: list[Any] = []
    stop = threading.Event()
    behind: Graph = {0: frozenset(), 1: frozenset(), 2: frozenset(), 3: frozenset({0})}
    work = SideBySide[int, int](behind, lambda _: "even", {"even": 1}, 4)
    assert not work.run(lambda node: begun.append(node) or node, lambda _: False, stop)
    assert begun == [0]
    assert not stop.is_set()
