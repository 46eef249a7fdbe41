"""Batches of logs: all or none, ids in order, once a key."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from storage.log_flush import flush_logs
from storage.store import Store
from storage.workspaces import create_key
from tests.logs import exchange

BATCH = "/api/public/v2/requests/batch"


def stored(store: Store) -> int:
    with store.logs.read() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM log_tail").scalar_one())


def batch(count: int, **changes: Any) -> dict[str, Any]:
    return {"requests": [exchange(function_name=str(number), **changes) for number in range(count)]}


def test_a_batch_is_logged_in_its_order(client: TestClient, store: Store) -> None:
    body = batch(1000)
    body["requests"][3] |= {"score": 0, "score_name": "tone"}
    answer = client.post(BATCH, json=body)
    assert answer.status_code == 201, answer.text
    assert set(answer.json()) == {"success", "ids"}
    ids = answer.json()["ids"]
    assert ids == list(range(ids[0], ids[0] + 1000))
    for at in (0, 3, 999):
        found = client.get(f"/api/public/v2/requests/{ids[at]}").json()
        assert found["function_name"] == str(at)
        assert found["scores"] == ({"tone": 0} if at == 3 else {})
    flush_logs(store)
    assert client.get(f"/api/public/v2/requests/{ids[500]}").json()["function_name"] == "500"


def test_a_repeat_with_the_same_key_returns_the_first_ids(client: TestClient, store: Store) -> None:
    key = {"Idempotency-Key": "k 1"}
    first = client.post(BATCH, json=batch(5), headers=key)
    again = client.post(BATCH, json=batch(5), headers=key)
    assert (again.status_code, again.json()) == (201, first.json())
    assert client.post(BATCH, json=batch(4), headers=key).json()["error"] == "conflict"
    assert client.post(BATCH, json=batch(5, score=1), headers=key).status_code == 409
    assert client.post("/log-request", json=exchange(), headers=key).status_code == 409
    assert stored(store) == 5
    assert client.post(BATCH, json=batch(1), headers={"Idempotency-Key": "x" * 256}).status_code == 422


def test_callers_at_once_with_one_key_are_one_batch(client: TestClient, store: Store) -> None:
    def send(_: int) -> Any:
        return client.post(BATCH, json=batch(20), headers={"Idempotency-Key": "k"}).json()["ids"]

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(send, range(8)))
    assert all(one == answers[0] for one in answers)
    assert stored(store) == 20


def spoiled(at: int, **changes: Any) -> dict[str, Any]:
    body = batch(1000)
    body["requests"][at] |= changes
    return body


@pytest.mark.parametrize(
    ("body", "status", "loc"),
    [
        (spoiled(17, input={"type": "chat", "messages": [{"role": "user", "content": "x"}]}), 422,
         "body.requests.17.input.messages.0.content"),
        (spoiled(999, model=7), 422, "body.requests.999.model"),
        (spoiled(5, request_end_time=1), 422, "body.requests.5.request_end_time"),
        (spoiled(6, error_type="PROVIDER_TIMEOUT"), 422, "body.requests.6.error_type"),
        (spoiled(7, prompt_version_number=1), 422, "body.requests.7.prompt_version_number"),
        (spoiled(8, prompt_name="nobody"), 404, None),
        (spoiled(9, parameters={"a": [1e308 * 10]}), 400, None),
        (batch(1001), 422, "body.requests"),
        ({"requests": []}, 422, "body.requests"),
        ({"requests": {}}, 422, "body.requests"),
        ({"requests": [1]}, 422, "body.requests.0"),
        ({}, 422, "body.requests"),
        ({"requests": [exchange()], "more": 1}, 422, "body.more"),
        ([], 422, "body"),
    ],
)  # fmt: skip
def test_one_that_does_not_fit_refuses_all(
    client: TestClient, store: Store, body: Any, status: int, loc: str | None
) -> None:
    content = json.dumps(body).replace("Infinity", "1e999")
    answer = client.post(BATCH, content=content)
    assert answer.status_code == status, answer.text
    if loc:
        assert ".".join(answer.json()["detail"][0]["loc"]) == loc
    elif status == 404:
        assert "requests.8" in answer.json()["message"]
    assert stored(store) == 0


def test_every_log_that_does_not_fit_is_named_up_to_a_hundred(client: TestClient) -> None:
    body = batch(1000, model=7)
    detail = client.post(BATCH, json=body).json()["detail"]
    assert [one["loc"][2] for one in detail] == [str(number) for number in range(100)]


@pytest.mark.parametrize(
    ("content", "status"),
    [(b"", 400), (b"{", 400), (b'{"requests": [NaN]}', 400), (b'{"requests": ["\\ud800"]}', 400)],
)
def test_what_is_no_json_is_refused(client: TestClient, content: bytes, status: int) -> None:
    assert client.post(BATCH, content=content).status_code == status


def test_a_batch_may_be_larger_than_other_bodies_up_to_64_mb(client: TestClient, store: Store) -> None:
    long = exchange(function_name="x" * 6_000_000)
    body = json.dumps({"requests": [long, long]}).encode()
    assert client.post("/log-request", content=body).status_code == 413
    assert client.post(BATCH, content=body).status_code == 201
    declared = {"Content-Length": str(67_108_865)}
    assert client.post(BATCH, content=b"{}", headers=declared).status_code == 413
    assert stored(store) == 2


def test_a_batch_of_countless_values_is_refused_before_it_is_read(client: TestClient) -> None:
    content = b'{"requests": [' + b"0," * 4_000_001 + b"0]}"
    assert client.post(BATCH, content=content).status_code == 413


def test_only_a_key_that_may_log(client: TestClient, store: Store) -> None:
    reader = create_key(store, scopes=["read"])[1]
    assert client.post(BATCH, json=batch(1), headers={"X-API-KEY": reader}).status_code == 403
    assert client.post(BATCH, json=batch(1), headers={"X-API-KEY": "no"}).status_code == 401
