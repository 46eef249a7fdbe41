"""Search of request logs over HTTP: pages, orders, words, sums; flushed or not, each log once."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import pytest
from starlette.testclient import TestClient

from storage.log_flush import flush_logs
from storage.store import Store
from tests.logs import add_logs, chat, exchange

SEARCH = "/api/public/v2/requests/search"
ANALYTICS = "/api/public/v2/requests/analytics"
DAY_US = 86_400_000_000
FIRST_US = 1_767_225_600_000_000


def search(client: TestClient, *filters: dict[str, Any], **body: Any) -> dict[str, Any]:
    answer = client.post(SEARCH, json={"filter_group": {"logic": "AND", "filters": list(filters)}} | body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert set(found) == {"success", "items", "page", "per_page", "total", "pages", "as_of"}
    return found


def ids_of(found: dict[str, Any]) -> list[int]:
    return [item["id"] for item in found["items"]]


@pytest.fixture
def made(client: TestClient, store: Store) -> list[int]:
    """Twelve logs, oldest first: four in one file, four in another, the last four in the tail."""
    made = []
    for n in range(12):
        made += add_logs(
            store,
            1,
            model=("a", "b", "c")[n % 3],
            price=float(n % 4),
            input_tokens=n,
            status="ERROR" if n == 5 else "SUCCESS",
            request_start_time=FIRST_US + n * DAY_US // 4,
            request_end_time=FIRST_US + n * DAY_US // 4 + 1000 * n,
            metadata={"n": str(n), "even": str(n % 2 == 0)},
            output=chat("assistant", f"Answer {n}, said the Straße."),
        )
        if n in {3, 7}:
            flush_logs(store)
    return made


def test_pages_are_newest_first_and_add_up(client: TestClient, made: list[int]) -> None:
    pages = [search(client, page=page, per_page=5) for page in (1, 2, 3, 4)]
    assert [one for page in pages for one in ids_of(page)] == made[::-1]
    assert [(page["total"], page["pages"], page["page"], page["per_page"]) for page in pages] == [
        (12, 3, number, 5) for number in (1, 2, 3, 4)
    ]
    assert client.post(SEARCH, json={}).json()["items"] == pages[0]["items"] + pages[1]["items"]
    assert ids_of(search(client, page=10**15)) == []


def test_an_item_says_everything_but_the_texts(client: TestClient) -> None:
    logged = client.post("/log-request", json=exchange(tags=["x"], metadata={"a": "b"}, score=7)).json()
    (item,) = search(client)["items"]
    whole = client.get(f"/api/public/v2/requests/{logged['id']}").json()
    absent = {"input", "output", "parameters", "prompt_input_variables", "prompt_blueprint", "success"}
    assert item == {name: value for name, value in whole.items() if name not in absent | {"prompt_name"}}
    (named,) = search(client, include_prompt_name=True)["items"]
    assert named["prompt_name"] is None


SORTS = ("input_tokens", "output_tokens", "cost", "latency_ms", "status", "request_start_time")


def test_orders_break_ties_by_the_newest(client: TestClient, made: list[int]) -> None:
    for sort_by, order in product(SORTS, ("asc", "desc")):
        pages = [search(client, sort_by=sort_by, sort_order=order, page=n, per_page=5) for n in (1, 2, 3)]
        items = [item for page in pages for item in page["items"]]
        key = "price" if sort_by == "cost" else sort_by
        newest = sorted(items, key=lambda item: -item["id"])
        expected = sorted(newest, key=lambda item, key=key: item[key], reverse=order == "desc")
        assert items == expected, (sort_by, order)
        assert len(items) == 12


def test_pages_of_one_moment_do_not_move_while_logs_come_in(
    client: TestClient, store: Store, made: list[int]
) -> None:
    first = search(client, per_page=5)
    new = add_logs(store, 3)
    flush_logs(store)
    rest = [search(client, per_page=5, page=page, as_of=first["as_of"]) for page in (2, 3)]
    assert [one for page in (first, *rest) for one in ids_of(page)] == made[::-1]
    assert rest[0]["total"] == 12
    assert ids_of(search(client, per_page=3)) == new[::-1]


def test_filters_and_words_are_anded(client: TestClient, made: list[int]) -> None:
    by_model = {"field": "engine", "operator": "is", "value": "b"}
    by_key = {"value": "True", "nested_key": "even"}
    assert ids_of(search(client, by_model)) == [made[n] for n in (10, 7, 4, 1)]
    assert ids_of(search(client, by_model, by_key)) == [made[n] for n in (10, 4)]
    assert ids_of(search(client, by_model, q="answer 1")) == [made[n] for n in (10, 1)]
    assert ids_of(search(client, q="STRAẞE ans said 11")) == [made[11]]
    assert search(client, q="straß nobody")["total"] == 0
    either = {"logic": "OR", "filters": [{"field": "status", "operator": "is", "value": "ERROR"}, by_model]}
    assert ids_of(search(client, either)) == [made[n] for n in (10, 7, 5, 4, 1)]


def test_what_is_said_of_a_log_later_is_searched(client: TestClient, made: list[int]) -> None:
    search(client, {"value": "x", "nested_key": "late"})
    for log_id in (made[1], made[11]):
        said = {"request_id": log_id, "metadata": {"late": "x", "even": "maybe"}}
        assert client.post("/rest/track-metadata", json=said).status_code == 200
    assert ids_of(search(client, {"value": "x", "nested_key": "late"})) == [made[11], made[1]]
    assert search(client, {"value": "True", "nested_key": "even"})["total"] == 6
    assert search(client, {"value": "False", "nested_key": "even"})["total"] == 4
    for log_id, score in ((made[0], 40), (made[11], 60)):
        client.post("/rest/track-score", json={"request_id": log_id, "score": score})
    high = {"field": "score", "operator": "gte", "value": "50"}
    assert ids_of(search(client, high)) == [made[11]]
    assert search(client, {"field": "score", "operator": "is_null"})["total"] == 10


def test_deleted_logs_are_not_found(client: TestClient, made: list[int]) -> None:
    assert search(client)["total"] == 12
    for log_id in (made[2], made[10]):
        assert client.delete(f"/api/public/v2/requests/{log_id}").status_code == 200
    left = [one for one in made if one not in {made[2], made[10]}]
    found = search(client, per_page=100)
    assert (ids_of(found), found["total"]) == (left[::-1], 10)


def test_logs_of_another_workspace_are_not_found(
    client: TestClient, made: list[int], foreign_key: str
) -> None:
    answer = client.post(SEARCH, json={}, headers={"X-API-KEY": foreign_key}).json()
    assert (answer["items"], answer["total"], answer["pages"], answer["as_of"]) == ([], 0, 0, 0)


def test_each_log_is_found_once_while_others_log_and_flush(client: TestClient, store: Store) -> None:
    def log(at: int) -> None:
        add_logs(store, 20, function_name=f"f{at}")
        flush_logs(store)

    with ThreadPoolExecutor(2) as pool:
        work = [pool.submit(log, at) for at in range(6)]
        seen = 0
        while not all(one.done() for one in work):
            found = search(client, per_page=100, sort_by="input_tokens", sort_order="asc")
            assert len(set(ids_of(found))) == len(found["items"]) == min(found["total"], 100)
            assert found["total"] >= seen
            seen = found["total"]
        for one in work:
            one.exception()  # a flush that another one was ahead of is refused
    assert search(client)["total"] == 120


def test_a_wrong_filter_is_named_by_its_path_and_never_a_failure_of_ours(client: TestClient) -> None:
    leaf = {"field": "engine", "operator": "is", "value": "x"}
    scores = [{"field": "score", "operator": "neq", "nested_key": str(at), "value": at} for at in range(100)]

    def deep(depth: int) -> dict[str, Any]:
        group: dict[str, Any] = {"filters": [leaf]}
        for at in range(depth - 1):
            group = {"logic": "OR" if at % 2 else "AND", "filters": [leaf, group]}
        return group

    for body, loc in [
        (
            {"filter_group": {"filters": [leaf, {"field": "x"}]}},
            ["body", "filter_group", "filters", "1", "field"],
        ),
        ({"filter_group": {"filters": [leaf] * 10_000}}, None),
        ({"filter_group": deep(201)}, None),
        ({"filter_group": {"filters": [*scores, scores[0]]}}, ["body", "filter_group", "filters", "100"]),
        ({"filter_group": []}, ["body", "filter_group"]),
        ({"sort_order": "asc"}, None),
        ({"sort_by": "colour", "sort_order": "asc"}, ["body", "sort_by"]),
        ({"page": 0}, ["body", "page"]),
        ({"page": 2**63}, ["body", "page"]),
        ({"per_page": 101}, ["body", "per_page"]),
        ({"q": "x" * 1_001}, ["body", "q"]),
        ({"q": " ".join(str(number) for number in range(100, 133))}, ["body", "q"]),
        ({"q": 7}, ["body", "q"]),
        ({"colour": 1}, ["body", "colour"]),
    ]:
        answer = client.post(SEARCH, json=body)
        assert (answer.status_code, answer.json()["error"]) == (422, "validation_error"), body
        if loc is not None:
            assert answer.json()["detail"][0]["loc"] == loc
    assert client.post(SEARCH, json={"filter_group": deep(200)}).status_code == 200
    assert client.post(SEARCH, json={"filter_group": {"filters": [leaf] * 1_000}}).status_code == 200
    empty = [{"field": "input_variables", "operator": "is_empty", "nested_key": str(at)} for at in range(100)]
    for costly in (scores, empty):
        for logic in ("AND", "OR"):
            group = {"logic": logic, "filters": costly}
            assert client.post(SEARCH, json={"filter_group": group}).status_code == 200
    headers = {"Content-Type": "application/json"}
    for depth, status in ((450, 422), (5_000, 422)):
        text = '{"filter_group": ' + '{"filters": [' * depth + "]}" * depth + "}"
        assert client.post(SEARCH, content=text, headers=headers).status_code == status


NASTY = ["'", "' OR 1=1 --", '"', "%", "_", "\\", "(?i).*", "\x00", "a\nb", "🕷", "$1", "?"]


def test_what_a_client_writes_is_only_compared(client: TestClient, store: Store) -> None:
    made = {
        value: add_logs(
            store,
            1,
            provider=value,
            metadata={value: f"x{value}x"},
            tags=[value],
            output=chat("assistant", f"<{value}>"),
        )
        for value in NASTY
    }
    flush_logs(store)
    for value, wanted in made.items():
        for one in (
            {"field": "provider_type", "operator": "is", "value": value},
            {"field": "metadata", "operator": "key_equals", "nested_key": value, "value": f"x{value}x"},
            {"field": "metadata", "operator": "key_contains", "nested_key": value, "value": value},
            {"field": "tags", "operator": "contains", "value": value},
            {"field": "output_text", "operator": "contains", "value": f"<{value}>"},
            {"field": "output_text", "operator": "ends_with", "value": f"{value}>"},
            {"field": "metadata_keys", "operator": "in", "value": [value, "none"]},
        ):
            assert ids_of(search(client, one)) == wanted, one


def test_sums_are_by_day_and_model_and_in_all(client: TestClient, made: list[int]) -> None:
    answer = client.post(ANALYTICS, json={}).json()
    assert answer["totals"]["requests"] == 12
    assert (answer["totals"]["errors"], answer["totals"]["input_tokens"]) == (1, 66)
    assert answer["totals"]["cost"] == 18.0
    assert [(one["date"], one["model"], one["requests"]) for one in answer["series"]] == [
        ("2026-01-01", "a", 2), ("2026-01-01", "b", 1), ("2026-01-01", "c", 1),
        ("2026-01-02", "a", 1), ("2026-01-02", "b", 2), ("2026-01-02", "c", 1),
        ("2026-01-03", "a", 1), ("2026-01-03", "b", 1), ("2026-01-03", "c", 2),
    ]  # fmt: skip
    of_b = {"filters": [{"field": "engine", "operator": "is", "value": "b"}]}
    some = client.post(ANALYTICS, json={"filter_group": of_b, "q": "answer"}).json()
    assert (some["totals"]["requests"], len(some["series"])) == (4, 3)
    none = client.post(ANALYTICS, json={"q": "nobody"}).json()
    assert none["series"] == []
    assert none["totals"] == {
        "requests": 0, "errors": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0,
        "latency_ms_avg": None, "latency_ms_p50": None, "latency_ms_p95": None,
    }  # fmt: skip


def test_the_document_names_fields_and_operators(client: TestClient) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    spelled = json.dumps(schemas["FilterGroup"]) + json.dumps(schemas["Filter"])
    assert all(word in spelled for word in ("input_variable_keys", "key_not_equals", "nested_key", "AND"))


def test_costs_and_variables_are_found_by_the_numbers_that_were_logged(client: TestClient) -> None:
    variables = {"t": 1.0, "u": 1e22, "v": 1e-7, "w": 5, "x": "5"}
    client.post("/log-request", json=exchange(price=1e300, prompt_input_variables=variables))

    def found(**one: Any) -> int:
        body = {"filter_group": {"filters": [one]}}
        answer = client.post("/api/public/v2/requests/search", json=body)
        assert answer.status_code == 200, answer.text
        return int(answer.json()["total"])

    assert found(field="cost", operator="gt", value=1e299) == 1
    assert found(field="cost", operator="eq", value=1e300) == 1
    assert found(field="cost", operator="between", value=[2**64, 10**305]) == 1
    assert found(field="cost", operator="gt", value=1e301) == 0
    for key, value in variables.items():
        for same in (value, float(value)):
            assert found(field="input_variables", operator="key_equals", value=same, nested_key=key) == 1
            assert found(field="input_variables", operator="in", value=[same, "no"], nested_key=key) == 1
    assert found(field="input_variables", operator="key_equals", value=2.0, nested_key="t") == 0


def test_a_cost_beyond_all_numbers_is_the_largest_number(client: TestClient, store: Store) -> None:
    add_logs(store, 2, price=1.7e308)
    totals = client.post(ANALYTICS, json={}).json()["totals"]
    assert totals["cost"] == sys.float_info.max
