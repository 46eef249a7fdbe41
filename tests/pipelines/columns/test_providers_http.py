"""Columns that ask a model over HTTP: faults, limits, calls counted."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pipelines.columns import models
from pipelines.providers.failures import read_vectors
from pipelines.providers.protocol import ProviderFailure
from pipelines.providers.retries import RetryPolicy
from storage.domain.keys import Principal
from storage.imports import cancel_operation
from storage.operations import ClaimRefused
from storage.request_logs import get_request_log
from storage.store import Store
from tests.model_server import ModelServer
from tests.recalculating import Bench

GPT = {"provider": "openai", "model": "gpt-4o-mini"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "ak-test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url.removesuffix("/v1"))
        yield server


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "POLICY", RetryPolicy(most=3, first_s=0.02))


def asked(bench: Bench, title: str = "A", **config: Any) -> list[Any]:
    config = {"prompt": "{Q}", "engine": GPT} | config
    bench.run(bench.add(title, "llm", **config).operation)
    return bench.values(title)


def sheet(store: Store, who: Principal, *questions: str) -> Bench:
    return Bench(store, who, ["Q"], [[question] for question in questions])


def test_a_call_is_priced_logged_and_signed(store: Store, who: Principal, server: ModelServer) -> None:
    bench = sheet(store, who, "hello")
    assert asked(bench) == ["hello"]
    metrics = bench.cells("A")[0].state.request_metrics
    assert metrics is not None
    assert (metrics["input_tokens"], metrics["output_tokens"]) == (10, 5)
    assert metrics["price"] == pytest.approx(10 * 0.15e-6 + 5 * 0.6e-6)
    assert metrics["latency_ms"] > 0
    log = get_request_log(store, who, metrics["request_ids"][0])
    assert (log["provider"], log["model"], log["price"]) == ("openai", "gpt-4o-mini", metrics["price"])
    assert server.headers[0]["authorization"] == "Bearer sk-test"
    assert "sk-test" not in str(log)


def test_anthropic_and_completions(store: Store, who: Principal, server: ModelServer) -> None:
    bench = sheet(store, who, "hello")
    claude = {"provider": "anthropic", "model": "claude-sonnet-4-5"}
    assert asked(bench, "C", engine=claude, system="Be kind") == ["hello"]
    assert server.paths == ["/v1/messages"]
    assert server.headers[0]["authorization"] == "Bearer ak-test"
    assert server.bodies[0]["system"] == "Be kind"
    text = {"type": "completion", "content": [{"type": "text", "text": "{q}"}]}
    mapped = {"prompt_template_variable_mappings": {"q": "Q"}}
    bench.run(
        bench.add(
            "P", "prompt_template", inline_template={"prompt_template": text}, engine=GPT, **mapped
        ).operation
    )
    assert bench.values("P") == ["hello"]
    assert server.paths[1] == "/v1/completions"


def test_endpoints_that_the_operator_names(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer() as server:
        named = replace(store, settings=replace(store.settings, providers=f"our-own={server.url}"))
        monkeypatch.setenv("OUR_OWN_API_KEY", "k")
        bench = sheet(named, who, "hello")
        assert asked(bench, engine={"provider": "our-own", "model": "m"}) == ["hello"]
        metrics = bench.cells("A")[0].state.request_metrics
        assert metrics is not None
        assert metrics["price"] == 0


@pytest.mark.parametrize(
    ("mark", "error", "calls"),
    [
        ("{500}", "PROVIDER_ERROR", 3),
        ("{401}", "PROVIDER_AUTH_ERROR", 1),
        ("{400}", "PROVIDER_ERROR", 1),
        ("{quota}", "PROVIDER_QUOTA_LIMIT", 1),
        ("{cut}", "PROVIDER_PARTIAL_RESPONSE", 3),
        ("{malformed}", "PROVIDER_PARTIAL_RESPONSE", 3),
        ("{hang}", "PROVIDER_TIMEOUT", 3),
    ],
)
def test_faults(store: Store, who: Principal, server: ModelServer, mark: str, error: str, calls: int) -> None:
    # long enough for a call to reach the server on a busy machine, where it is counted
    hasty = replace(store, settings=replace(store.settings, model_timeout_s=1.0))
    bench = sheet(hasty, who, mark, "fine")
    asked(bench)
    assert bench.statuses("A") == ["failed", "completed"]
    assert bench.errors("A")[0] == error
    assert server.calls[mark] == calls
    # nothing that failed is kept: asked again, it is asked again
    bench.recalculate()
    assert server.calls == {mark: 2 * calls, "fine": 1}


@pytest.mark.parametrize("mark", ["{500 1}", "{cut 1}", "{malformed 2}", "{429 1}", "{hang 1}"])
def test_faults_that_pass(store: Store, who: Principal, server: ModelServer, mark: str) -> None:
    hasty = replace(store, settings=replace(store.settings, model_timeout_s=0.3))
    bench = sheet(hasty, who, mark)
    assert asked(bench) == [mark]
    metrics = bench.cells("A")[0].state.request_metrics
    assert metrics is not None
    log = get_request_log(store, who, metrics["request_ids"][0])
    assert log["status"] == "WARNING"


def test_retry_after_lets_everybody_wait(store: Store, who: Principal, server: ModelServer) -> None:
    narrow = replace(store, settings=replace(store.settings, model_calls=1))
    bench = sheet(narrow, who, "{429 1}", "a", "b")
    assert asked(bench) == ["{429 1}", "a", "b"]
    refused, next_call = server.times[:2]
    assert next_call - refused >= 0.29


def test_a_long_answer_is_kept_with_a_warning(store: Store, who: Principal, server: ModelServer) -> None:
    bench = sheet(store, who, "{long}")
    assert asked(bench) == ["{long}"]
    metrics = bench.cells("A")[0].state.request_metrics
    assert metrics is not None
    log = get_request_log(store, who, metrics["request_ids"][0])
    assert (log["status"], log["error_type"]) == ("WARNING", "PROVIDER_PARTIAL_RESPONSE")


def test_calls_at_once_and_calls_counted(store: Store, who: Principal, server: ModelServer) -> None:
    server.delay_s = 0.02
    narrow = replace(store, settings=replace(store.settings, model_calls=4))
    bench = sheet(narrow, who, *(str(n % 20) for n in range(60)))
    assert asked(bench) == [str(n % 20) for n in range(60)]
    assert server.most_open == 4
    assert set(server.calls.values()) == {1}
    bench.recalculate(statuses=())
    asked(bench, "B")
    assert sum(server.calls.values()) == 20
    bench.edit("Q", 3, "new")
    bench.recalculate()
    assert sum(server.calls.values()) == 21


def test_a_rate_is_held(store: Store, who: Principal, server: ModelServer) -> None:
    slow = replace(store, settings=replace(store.settings, model_calls_per_minute=600))
    bench = sheet(slow, who, *(str(n) for n in range(16)))
    asked(bench)
    # ten a second, one second's worth at once
    assert server.times[-1] - server.times[0] >= 0.4


def test_two_runs_compute_the_same_once(store: Store, who: Principal, server: ModelServer) -> None:
    server.delay_s = 0.3
    benches = [sheet(store, who, "same", "also"), sheet(store, who, "also", "same")]
    operations = [one.add("A", "llm", prompt="{Q}", engine=GPT).operation for one in benches]
    threads = [
        threading.Thread(target=one.run, args=(operation,))
        for one, operation in zip(benches, operations, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.calls == {"same": 1, "also": 1}
    assert benches[0].values("A") == ["same", "also"]
    assert benches[1].values("A") == ["also", "same"]


def test_a_cancelled_run_stops_asking(store: Store, who: Principal, server: ModelServer) -> None:
    server.delay_s = 0.1
    narrow = replace(store, settings=replace(store.settings, model_calls=2))
    bench = sheet(narrow, who, *(str(n) for n in range(40)))
    operation = bench.add("A", "llm", prompt="{Q}", engine=GPT).operation
    assert operation is not None

    def cancel() -> None:
        while len(server.calls) < 4:
            time.sleep(0.01)
        cancel_operation(store, who, **bench.place, operation_id=operation.id)

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(ClaimRefused):
        bench.run(operation)
    thread.join()
    called = sum(server.calls.values())
    assert called < 30
    time.sleep(0.5)
    assert sum(server.calls.values()) == called
    # what was answered is known
    server.delay_s = 0.0
    bench.recalculate()
    assert bench.statuses("A") == ["completed"] * 40
    assert sum(server.calls.values()) <= 40 + 2 * 2


def test_a_budget_holds(store: Store, who: Principal, server: ModelServer) -> None:
    bench = sheet(store, who, *(f"question {n}" for n in range(60)))
    created = bench.add("A", "llm", prompt="{Q}", engine={**GPT, "parameters": {"max_tokens": 5}})
    assert created.operation is not None
    cancel_operation(store, who, **bench.place, operation_id=created.operation.id)
    done = bench.recalculate(budget=0.0001)
    assert (done.operation.status, done.operation.message) == ("cancelled", "budget reached")
    assert 3 < done.completed_count < 60
    assert sum(server.calls.values()) == done.completed_count
    assert sum(task.price for task in done.tasks) <= 0.0001
    assert sorted(set(bench.statuses("A"))) == ["completed", "stale"]


def test_texts_are_compared_by_their_embeddings(store: Store, who: Principal, server: ModelServer) -> None:
    rows = [["abba", "ab"], ["ab", "cd"], ["same", "same"], ["", "x"], ["abba", "ab"], ["{500 1} ab", "ab"]]
    bench = Bench(store, who, ["A", "B"], rows)
    embedding = {"provider": "openai", "model": "text-embedding-3-small"}
    config = {"sources": ["A", "B"], "metric": "cosine_similarity", "embedding": embedding}
    bench.run(bench.add("Like", "score", **config).operation)
    assert bench.values("Like") == [1.0, 0.0, 1.0, 0.0, 1.0, 1.0]
    # each text once, all of them in one call, which was tried again
    assert server.calls == {"abba\nab\ncd\n{500 1} ab": 2}
    cells = bench.cells("Like")
    metrics = [cell.state.request_metrics for cell in cells]
    first, second, other = metrics[0], metrics[1], metrics[4]
    assert first is not None
    assert second is not None
    assert other is not None
    # the call's tokens and price are shared by length among the cells that asked for its texts first
    assert [one["input_tokens"] for one in metrics if one is not None] == [3, 1, 3, 6]
    assert (first["request_count"], first["output_tokens"], second["request_count"]) == (1, 0, 1)
    assert sum(one["price"] for one in (first, second, metrics[5] or {})) == pytest.approx(10 * 0.02e-6)
    assert (cells[4].state.cached, other["request_count"]) == (True, 0)
    assert len({one["request_ids"][0] for one in metrics if one is not None}) == 1
    log = get_request_log(store, who, first["request_ids"][0])
    assert [block["text"] for block in log["input"]["content"]] == ["abba", "ab", "cd", "{500 1} ab"]
    assert (log["function_name"], log["status"]) == ("openai.embeddings.create", "WARNING")
    assert log["metadata"]["execution_id"] == cells[0].state.execution_id
    # a threshold asks nobody again
    bench.change("Like", config={**config, "pass_threshold": 0.5})
    bench.recalculate()
    assert bench.values("Like") == [1.0, 0.0, 1.0, 0.0, 1.0, 1.0]
    assert sum(server.calls.values()) == 2


def test_many_texts_are_embedded_in_few_calls_and_none_twice(
    store: Store, who: Principal, server: ModelServer
) -> None:
    rows = [[f"text {'a' * (n % 50)} {n % 50}", "the truth"] for n in range(300)]
    bench = Bench(store, who, ["A", "B"], rows)
    embedding = {"provider": "openai", "model": "text-embedding-3-small"}
    config = {"sources": ["A", "B"], "metric": "cosine_similarity", "embedding": embedding}
    bench.run(bench.add("Like", "score", **config).operation)
    assert set(bench.statuses("Like")) == {"completed"}
    asked = [text for body in server.bodies for text in body["input"]]
    assert sorted(asked) == sorted({text for row in rows for text in row})
    assert max(len(body["input"]) for body in server.bodies) == 32
    prices = [cell.state.request_metrics for cell in bench.cells("Like")]
    paid = sum(one["price"] for one in prices if one is not None and one["request_count"])
    assert paid == pytest.approx(len(server.bodies) * 10 * 0.02e-6)


@pytest.mark.parametrize(
    ("mark", "error"), [("{401}", "PROVIDER_AUTH_ERROR"), ("{cut}", "PROVIDER_PARTIAL_RESPONSE")]
)
def test_embeddings_fail_as_other_calls_do(
    store: Store, who: Principal, server: ModelServer, mark: str, error: str
) -> None:
    bench = Bench(store, who, ["A", "B"], [[mark, "x"], ["a", "b"]])
    config = {"sources": ["A", "B"], "metric": "cosine_similarity"}
    openai = {"provider": "openai", "model": "text-embedding-3-small"}
    bench.run(bench.add("Like", "score", embedding=openai, **config).operation)
    assert bench.errors("Like") == [error, None]
    claude = {"provider": "anthropic", "model": "claude-sonnet-4-5"}
    bench.run(bench.add("None", "score", embedding=claude, **config).operation)
    assert bench.errors("None") == ["engine_unavailable"] * 2


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": None},
        {"data": [{"embedding": [1]}]},
        {"data": [{"embedding": [1]}, {"embedding": []}]},
        {"data": [{"embedding": [1]}, {"embedding": "x"}]},
        {"data": [{"embedding": [1]}, {"embedding": [None]}]},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]},
    ],
)
def test_embeddings_that_are_not_all_there_are_no_answer(body: Any) -> None:
    with pytest.raises(ProviderFailure, match="no embedding of each text"):
        read_vectors(body, 2)


def test_keys_are_told_to_nobody(store: Store, who: Principal, server: ModelServer) -> None:
    """A service that repeats the key in its error tells it to nobody who looks at cells or logs."""
    bench = sheet(store, who, "{echo}", "{echo500}")
    asked(bench)
    assert bench.errors("A") == ["PROVIDER_AUTH_ERROR", "PROVIDER_ERROR"]
    messages = [cell.state.error_message or "" for cell in bench.cells("A")]
    assert "sk-test" not in str(messages)
    assert all("Bad key: Bearer ***" in message for message in messages)
    for cell in bench.cells("A"):
        assert cell.state.request_metrics is not None
        (log_id,) = cell.state.request_metrics["request_ids"]
        assert "sk-test" not in str(get_request_log(store, who, log_id))


def test_tools_and_formats_of_a_prompt_reach_the_model(
    store: Store, who: Principal, server: ModelServer
) -> None:
    bench = sheet(store, who, "{tool weather}", "{say 5}")
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    said = [{"role": "user", "content": [{"type": "text", "text": "{q}"}]}]
    chat = {"type": "chat", "messages": said, "tools": [tool], "tool_choice": "auto"}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer"}}}
    model = {"provider": "openai", "name": "gpt-4o-mini", "parameters": {"response_format": form}}
    inline = {"prompt_template": chat, "metadata": {"model": model}}
    mapped = {"prompt_template_variable_mappings": {"q": "Q"}}
    bench.run(bench.add("A", "prompt_template", inline_template=inline, **mapped).operation)
    for body in server.bodies:
        assert (body["tools"], body["tool_choice"], body["response_format"]) == ([tool], "auto", form)
    called, number = bench.values("A")
    assert number == 5
    assert called["tool_calls"][0]["function"] == {"name": "weather", "arguments": "{}"}
    metrics = bench.cells("A")[0].state.request_metrics
    assert metrics is not None
    log = get_request_log(store, who, metrics["request_ids"][0])
    assert log["input"]["tools"] == [tool]
    assert log["parameters"]["response_format"] == form
    assert log["output"]["messages"][0]["tool_calls"][0]["function"]["name"] == "weather"
