"""E3: values that logs have, the most frequent first; ten calls a minute and key."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from storage.domain.errors import RateLimited
from storage.engine.schema import suggestion_calls
from storage.log_flush import flush_logs
from storage.log_index import index_logs
from storage.settings import Settings
from storage.store import Store, open_store
from storage.suggestions import count_suggestion_call
from storage.workspaces import create_key, find_key
from tests.conftest import KEY
from tests.logs import add_logs, chat

PATH = "/api/public/v2/requests/suggestions"


@pytest.fixture
def ask(client: TestClient, store: Store) -> Callable[..., list[str]]:
    """Ask as often as you like."""

    def suggestions(field: str, **query: Any) -> list[str]:
        with store.catalog.transaction() as connection:
            connection.execute(suggestion_calls.delete())
        answer = client.get(PATH, params={"field": field} | query)
        assert answer.status_code == 200, answer.text
        assert answer.json()["success"] is True
        return list(answer.json()["values"])

    return suggestions


@pytest.fixture
def logged(store: Store) -> list[int]:
    """Logs of every kind; some in a file with a dictionary, some in a file without, some in the tail."""
    call = {"id": "c", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    calling = {"type": "chat", "messages": [{"role": "assistant", "content": [], "tool_calls": [call]}]}
    made = []
    made += add_logs(store, 3, provider="openai", model="gpt-4o", tags=["b", "a"], metadata={"user": "ada"})
    made += add_logs(
        store, 1, model="GPT-5", output=chat("assistant", '{"verdict": {"is": "yes", "n": [1, 2]}}')
    )
    flush_logs(store)
    index_logs(store, from_bytes=0)
    made += add_logs(store, 2, provider="anthropic", model="claude", metadata={"user": "bob", "Team": "x"})
    made += add_logs(store, 1, status="ERROR", prompt_id=7, prompt_name="greet", prompt_version_number=1)
    flush_logs(store)
    made += add_logs(
        store, 1, output=calling, tags=["a", "a"], prompt_input_variables={"city": "Rome", "n": 1}
    )
    made += add_logs(store, 1, prompt_id=8, prompt_name="Greeting", metadata={"user": "ada", "": "empty"})
    return made


CASES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("engine", {}, ["gpt-4o", "claude", "GPT-5"]),
    ("engine", {"prefix": "gPt"}, ["gpt-4o", "GPT-5"]),
    ("provider_type", {}, ["openai", "anthropic"]),
    ("status", {}, ["SUCCESS", "ERROR"]),
    ("prompt_id", {}, ["7", "8"]),
    ("prompt", {}, ["Greeting", "greet"]),
    ("prompt", {"prompt_id": 7}, ["greet"]),
    ("engine", {"prompt_id": 7}, ["gpt-4o", "claude", "GPT-5"]),
    ("tags", {}, ["a", "b"]),
    ("metadata_keys", {}, ["user", "Team"]),
    ("metadata_keys", {"prefix": "t"}, ["Team"]),
    ("metadata_values", {"metadata_key": "user"}, ["ada", "bob"]),
    ("metadata_values", {"metadata_key": "none"}, []),
    ("metadata_values", {"metadata_key": ""}, ["empty"]),
    ("tool_names", {}, ["weather"]),
    ("output_keys", {"prefix": "VERDICT"}, ["verdict.is", "verdict.n"]),
    ("output_values", {"metadata_key": "verdict.n"}, ["1", "2"]),
    ("output_values", {"metadata_key": "tool_calls.function.arguments.city"}, ["Oslo"]),
    ("input_variable_keys", {}, ["city", "n"]),
    ("input_variable_values", {"metadata_key": "city"}, ["Rome"]),
    ("engine", {"prefix": "g" * 300}, []),
    ("engine", {"prefix": "%"}, []),
    ("engine", {"prefix": ".*"}, []),
]


def test_values_of_a_field(ask: Callable[..., list[str]], logged: list[int]) -> None:
    for field, query, values in CASES:
        assert ask(field, **query) == values, (field, query)


def test_a_filter_group_scopes_them(ask: Callable[..., list[str]], logged: list[int]) -> None:
    group = {
        "filters": [{"field": "metadata", "operator": "key_equals", "nested_key": "user", "value": "ada"}]
    }
    assert ask("engine", filter_group=json.dumps(group)) == ["gpt-4o"]
    assert ask("provider_type", filter_group="{}") == ["openai", "anthropic"]
    assert ask(
        "tags", filter_group=json.dumps({"filters": [{"field": "is_tool_call", "operator": "is_true"}]})
    ) == ["a"]


def test_changed_and_deleted_logs_count_as_they_are(
    ask: Callable[..., list[str]], client: TestClient, logged: list[int]
) -> None:
    client.post("/rest/track-metadata", json={"request_id": logged[0], "metadata": {"user": "zoe"}})
    assert ask("metadata_values", metadata_key="user") == ["ada", "bob", "zoe"]
    client.delete(f"/api/public/v2/requests/{logged[0]}")
    assert ask("metadata_values", metadata_key="user") == ["ada", "bob"]


def test_at_most_a_hundred_are_given(ask: Callable[..., list[str]], store: Store) -> None:
    for n in range(120):
        add_logs(store, 1, model=f"m{n:03}")
    add_logs(store, 1, model="m119")
    add_logs(store, 1, model="x" * 300)
    assert ask("engine") == ["m119", *(f"m{n:03}" for n in range(99))]


def test_those_of_another_workspace_are_not_given(
    client: TestClient, logged: list[int], foreign_key: str
) -> None:
    answer = client.get(PATH, params={"field": "engine"}, headers={"X-API-KEY": foreign_key})
    assert answer.json() == {"success": True, "values": []}


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"field": "colour"},
        {"field": "metadata_values"},
        {"field": "output_values"},
        {"field": "input_variable_values"},
        {"field": "prompt", "prompt_id": 0},
        {"field": "engine", "filter_group": "{"},
        {"field": "engine", "filter_group": "[]"},
        {"field": "engine", "filter_group": '{"filters": [{"field": "x"}]}'},
        {"field": "engine", "filter_group": '{"filters": [' * 600 + "]}" * 600},
    ],
)
def test_a_query_that_does_not_fit_is_refused(client: TestClient, query: dict[str, Any]) -> None:
    answer = client.get(PATH, params=query)
    assert (answer.status_code, answer.json()["error"]) == (422, "validation_error"), answer.text
    assert answer.json()["detail"][0]["loc"][0] == "query"


def test_ten_calls_in_sixty_seconds_count_whatever_their_shape(client: TestClient, store: Store) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    state = cast("Starlette", client.app).state
    service = state.service
    at = [moment]
    state.service = replace(service, store=replace(service.store, now=lambda: at[0]))
    other = {"X-API-KEY": create_key(store)[1]}

    def call(**query: Any) -> int:
        return client.get(PATH, params={"field": "engine"} | query).status_code

    for n in range(10):
        at[0] = moment + timedelta(seconds=n)
        assert call(**({"prompt_id": 0} if n % 2 else {})) == (422 if n % 2 else 200)
    at[0] = moment + timedelta(seconds=59.5)
    refused = client.get(PATH, params={"field": "engine"})
    assert refused.status_code == 429
    assert refused.json() == {
        "success": False, "message": "Rate limit exceeded. Please retry later.", "error": "rate_limited",
    }  # fmt: skip
    wanted = {"Retry-After": "1", "X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "0"}
    assert {name: refused.headers[name] for name in wanted} == wanted
    assert int(refused.headers["X-RateLimit-Reset"]) == int(moment.timestamp()) + 60
    assert client.get(PATH, params={"field": "engine"}, headers=other).status_code == 200
    # the first one leaves the window, the refused one never was in it
    at[0] = moment + timedelta(seconds=60)
    assert (call(), call()) == (200, 429)
    at[0] = moment + timedelta(seconds=61)
    assert (call(), call()) == (200, 429)
    at[0] = moment + timedelta(seconds=200)
    assert [call() for _ in range(11)] == [200] * 10 + [429]


def test_the_limit_is_exact_for_calls_at_once_of_several_processes_and_after_a_restart(
    settings: Settings, store: Store
) -> None:
    facts = find_key(store, KEY)
    assert facts is not None
    who = facts.principal
    # stores of their own share no more than processes do
    others = [open_store(settings) for _ in range(3)]

    def call(at: int) -> bool:
        try:
            count_suggestion_call(others[at % 3], who)
        except RateLimited:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(call, range(30))) == 10
    for other in others:
        other.close()
    with pytest.raises(RateLimited):
        count_suggestion_call(store, who)
