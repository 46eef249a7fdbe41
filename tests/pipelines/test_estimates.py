"""What a recalculation would take is told before, and holds when it is done; asking for it costs nothing."""

from collections.abc import Iterator
from typing import Any

import pytest

from pipelines import estimates
from pipelines.estimates import estimate
from storage.domain.keys import Principal
from storage.domain.prompts import Publication
from storage.recalculation_estimates import Estimate
from storage.recalculations import Asked
from storage.store import Store
from storage.templates import publish
from tests.model_server import ModelServer
from tests.recalculating import Bench

GPT = {"provider": "openai", "model": "gpt-4o-mini"}
EACH = 10 * 0.15e-6 + 5 * 0.6e-6


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@pytest.fixture
def bench(store: Store, who: Principal) -> Bench:
    return Bench(store, who, ["Q"], [["one"], ["two"], ["one"], ["three"]])


def dry(bench: Bench, **asked: Any) -> list[Estimate]:
    return estimate(bench.store, bench.who, **bench.place, asked=Asked(**asked))


def counts(bench: Bench, **asked: Any) -> list[tuple[str, int, int, int]]:
    return [
        (one.column.title, one.cell_count, one.cached_count, one.unknown_count) for one in dry(bench, **asked)
    ]


def answer(bench: Bench, title: str = "A", **config: Any) -> None:
    bench.run(bench.add(title, "llm", **{"prompt": "{Q}", "engine": GPT, **config}).operation)


def test_a_changed_prompt_costs_what_it_cost_and_the_old_one_nothing(
    bench: Bench, server: ModelServer
) -> None:
    answer(bench)
    assert server.calls.total() == 3
    (settled,) = dry(bench)
    assert (settled.cell_count, settled.price) == (0, 0)
    bench.change("A", config={"prompt": "Now: {Q}", "engine": GPT})
    (changed,) = dry(bench)
    # the second "one" is answered by the first
    assert (changed.cell_count, changed.cached_count, changed.unknown_count) == (4, 1, 0)
    assert changed.price == pytest.approx(3 * EACH)
    assert changed.tokens == 3 * 15
    assert changed.seconds > 0
    bench.change("A", config={"prompt": "{Q}", "engine": GPT})
    (back,) = dry(bench)
    assert (back.cell_count, back.cached_count, back.price) == (4, 4, 0)
    assert server.calls.total() == 3
    done = bench.recalculate()
    assert (done.cached_count, server.calls.total()) == (4, 3)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"prompt": "ends", "source": "Q"},
        {"engine": GPT | {"parameters": {"temperature": 1}}},
        {"engine": GPT | {"parameters": {"temperature": 1}}, "cache": True},
    ],
)
def test_what_is_told_is_what_comes(
    store: Store, who: Principal, bench: Bench, server: ModelServer, config: dict[str, Any]
) -> None:
    other = Bench(store, who, ["Q"], [["two"], ["three"], ["four"]])
    given = {"prompt": "{Q}", "engine": GPT, **config}
    if "source" in given:
        given["engine"] = {"provider": "stub", "model": "echo"}
    other.run(other.add("A", "llm", **given).operation)
    bench.add("A", "llm", **given)
    _drop_queue(bench)
    (told,) = dry(bench)
    before = server.calls.total()
    done = bench.recalculate()
    assert told.cached_count == done.cached_count
    assert told.cell_count == done.cell_count == 4
    assert done.failed_count or server.calls.total() - before == 4 - done.cached_count or "source" in given


def _drop_queue(bench: Bench) -> None:
    from storage.imports import cancel_operation  # noqa: PLC0415
    from storage.operations import list_unended  # noqa: PLC0415

    for one in list_unended(bench.store):
        cancel_operation(bench.store, bench.who, **bench.place, operation_id=one.id)


def test_a_prompt_of_the_registry_is_read_at_its_label(
    bench: Bench, store: Store, who: Principal, server: ModelServer
) -> None:
    def published(text: str) -> None:
        blueprint = {
            "type": "chat",
            "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}],
            "template_format": "jinja2",
        }
        publish(store, who, Publication("greet", blueprint, release_labels=("prod",)))

    published("Hello {{ q }}")
    mapping = {"prompt_template_variable_mappings": {"q": "Q"}, "engine": GPT}
    named = {"template": {"name": "greet", "label": "prod"}, **mapping}
    bench.run(bench.add("A", "prompt_template", **named).operation)
    assert counts(bench, statuses=()) == [("A", 4, 4, 0)]
    published("Goodbye {{ q }}")
    # nothing is stale, but every cell would be computed
    assert counts(bench, statuses=()) == [("A", 4, 1, 0)]
    bench.add("Same", "comparison", sources=["Q", "A"])
    _drop_queue(bench)
    assert counts(bench, statuses=()) == [("A", 4, 1, 0), ("Same", 4, 0, 4)]
    assert server.calls.total() == 3


def test_what_reads_a_cell_that_is_to_be_computed_is_unknown(bench: Bench) -> None:
    for source, title in (("Q", "One"), ("One", "Two"), ("Two", "Three")):
        bench.run(bench.add(title, "composition", source=source).operation)
    assert counts(bench, statuses=()) == [("One", 4, 4, 0), ("Two", 4, 4, 0), ("Three", 4, 4, 0)]
    bench.edit("Q", 1, "other")
    assert counts(bench) == [("One", 1, 0, 0), ("Two", 1, 0, 1), ("Three", 1, 0, 1)]
    assert counts(bench, statuses=())[1:] == [("Two", 4, 3, 1), ("Three", 4, 3, 1)]
    bench.edit("Q", 1, "two")
    # as before: the first is found unchanged, and of the others nobody knows yet
    assert counts(bench) == [("One", 1, 1, 0), ("Two", 1, 0, 1), ("Three", 1, 0, 1)]
    assert bench.recalculate().cached_count == 3


def test_what_is_forced_is_computed_again_but_for_repeats(bench: Bench, server: ModelServer) -> None:
    answer(bench)
    assert counts(bench, statuses=(), force=True) == [("A", 4, 1, 0)]
    done = bench.recalculate(statuses=(), force=True)
    assert (done.cached_count, server.calls.total()) == (1, 6)


def test_what_is_forced_needs_no_look(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for source, title in (("Q", "One"), ("One", "Two")):
        bench.run(bench.add(title, "composition", source=source).operation)
    monkeypatch.setattr(estimates, "LOOKS_FOR_S", -1.0)
    assert counts(bench, statuses=(), force=True) == [("One", 4, 0, 0), ("Two", 4, 0, 0)]
    done = bench.recalculate(statuses=(), force=True)
    assert (done.completed_count, done.cached_count) == (8, 0)


def test_rows_and_columns_choose(bench: Bench, server: ModelServer) -> None:
    answer(bench)
    answer(bench, "B", prompt="B {Q}")
    bench.change("A", config={"prompt": "Now: {Q}", "engine": GPT})
    assert counts(bench, column_ids=[bench.column("A").id], row_indices=[0, 1]) == [("A", 2, 0, 0)]
    assert counts(bench, row_indices=[0, 2]) == [("A", 2, 1, 0), ("B", 0, 0, 0)]


def test_a_column_without_history_or_key_is_told_without_a_price(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    bench.add("A", "llm", prompt="{Q}", engine=GPT)
    bench.add("L", "prompt_template", template={"name": "gone"}, prompt_template_variable_mappings={})
    _drop_queue(bench)
    found = dry(bench)
    assert [(one.cached_count, one.unknown_count, one.price) for one in found] == [(1, 0, 0), (0, 4, 0)]


def test_who_has_no_time_to_look_tells_unknown(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.run(bench.add("One", "composition", source="Q").operation)
    bench.edit("Q", 1, "other")
    monkeypatch.setattr(estimates, "LOOKS_FOR_S", -1.0)
    assert counts(bench) == [("One", 1, 0, 1)]
