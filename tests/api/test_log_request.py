"""E1 over the whole application: what is taken, what is refused and how, what is answered."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from api.app import Application
from storage.store import Store
from storage.workspaces import create_key
from tests.logs import exchange

PATH = "/log-request"


def read(client: TestClient, log_id: int) -> dict[str, Any]:
    answer = client.get(f"/api/public/v2/requests/{log_id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_log_is_answered_with_its_id_and_blueprint_and_can_be_read(client: TestClient) -> None:
    body = exchange(parameters={"temperature": 0.5}, api_type="chat-completions")
    answer = client.post(PATH, json=body)
    assert answer.status_code == 201
    said = answer.json()
    assert said["id"] == said["request_id"] == 1
    assert (said["status"], said["error_type"], said["error_message"]) == ("SUCCESS", None, None)
    blueprint = said["prompt_version"]
    assert blueprint["prompt_template"]["type"] == "chat"
    assert blueprint["prompt_template"]["messages"] == [
        *body["input"]["messages"],
        *body["output"]["messages"],
    ]
    assert blueprint["metadata"]["model"] == {
        "provider": "openai",
        "name": "gpt-4o",
        "parameters": {"temperature": 0.5},
        "api_type": "chat-completions",
    }
    found = read(client, 1)
    assert found["prompt_blueprint"] == blueprint
    assert found["input"] == body["input"]
    assert found["latency_ms"] == 1250.0
    assert client.post(PATH, json=body).json()["id"] == 2


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("2024-05-01T10:00:00", "2024-05-01T10:00:00Z"),
        ("2024-05-01T12:00:00.25+02:00", "2024-05-01T10:00:00.250000Z"),
        (1714557600, "2024-05-01T10:00:00Z"),
        (1714557600.5, "2024-05-01T10:00:00.500000Z"),
        (1714557600500, "2024-05-01T10:00:00.500000Z"),
    ],
)
def test_times_are_text_or_numbers(client: TestClient, given: object, stored: str) -> None:
    answer = client.post(PATH, json=exchange(request_start_time=given, request_end_time=given))
    assert answer.status_code == 201, answer.text
    assert read(client, answer.json()["id"])["request_start_time"] == stored


@pytest.mark.parametrize(
    ("changes", "loc"),
    [
        ({"request_end_time": "2020-01-01T00:00:00Z"}, ["body", "request_end_time"]),
        ({"error_type": "PROVIDER_TIMEOUT"}, ["body", "error_type"]),
        ({"status": "ERROR", "error_type": "VARIABLE_MISSING_OR_EMPTY"}, ["body", "error_type"]),
        ({"error_type": "OTHER"}, ["body", "error_type"]),
        ({"status": "DONE"}, ["body", "status"]),
        ({"request_start_time": "yesterday"}, ["body", "request_start_time"]),
        ({"request_start_time": True}, ["body", "request_start_time"]),
        ({"request_start_time": 1e300}, ["body", "request_start_time"]),
        ({"request_start_time": "0001-01-01T00:00:00+05:00"}, ["body", "request_start_time"]),
        ({"tags": ["x" * 513]}, ["body", "tags", "0"]),
        ({"tags": None}, ["body", "tags"]),
        ({"metadata": {"k": 1}}, ["body", "metadata", "k"]),
        ({"metadata": {"k" * 1025: "v"}}, ["body", "metadata", "k" * 1025, "[key]"]),
        ({"score": 101}, ["body", "score"]),
        ({"score": -1}, ["body", "score"]),
        ({"score": "5"}, ["body", "score"]),
        ({"input_tokens": -1}, ["body", "input_tokens"]),
        ({"input_tokens": 2**63}, ["body", "input_tokens"]),
        ({"input_tokens": 1.5}, ["body", "input_tokens"]),
        ({"price": -0.1}, ["body", "price"]),
        ({"price": True}, ["body", "price"]),
        ({"prompt_version_number": 0, "prompt_name": "x"}, ["body", "prompt_version_number"]),
        ({"prompt_version_number": 1}, ["body", "prompt_version_number"]),
        ({"prompt_id": 2**63}, ["body", "prompt_id"]),
        ({"error_message": "x" * 1025}, ["body", "error_message"]),
        ({"parameters": []}, ["body", "parameters"]),
        ({"provider": None}, ["body", "provider"]),
        ({"input": {"type": "text"}}, ["body", "input"]),
        ({"input": {"messages": []}}, ["body", "input"]),
        ({"input": {"type": "chat"}}, ["body", "input", "messages"]),
        (
            {"input": {"type": "chat", "messages": [{"role": "user", "content": "hi"}]}},
            ["body", "input", "messages", "0", "content"],
        ),
        (
            {"input": {"type": "chat", "messages": [{"role": "user", "content": None}]}},
            ["body", "input", "messages", "0"],
        ),
        (
            {"input": {"type": "chat", "messages": [{"role": "user", "content": [{"type": "text"}]}]}},
            ["body", "input", "messages", "0", "content", "0"],
        ),
        (
            {"input": {"type": "chat", "messages": [{"role": "user", "content": [{"text": "x"}]}]}},
            ["body", "input", "messages", "0", "content", "0", "type"],
        ),
        ({"input": {"type": "completion", "content": "x"}}, ["body", "input", "content"]),
    ],
)
def test_values_that_break_a_rule_are_refused_by_name(
    client: TestClient, changes: dict[str, Any], loc: list[str]
) -> None:
    answer = client.post(PATH, json=exchange(**changes))
    assert answer.status_code == 422, answer.text
    said = answer.json()
    assert (said["success"], said["error"]) == (False, "validation_error")
    assert [problem["loc"] for problem in said["detail"]] == [loc]


@pytest.mark.parametrize("field", ["provider", "model", "input", "output", "request_start_time"])
def test_required_fields_are_required(client: TestClient, field: str) -> None:
    body = exchange()
    del body[field]
    answer = client.post(PATH, json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["body", field]


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\x00", 400),
        (b"[1]", 422),
        (b'"text"', 422),
        (b"null", 422),
        (b'{"provider": NaN}', 400),
        (json.dumps(exchange(unknown=[float("nan")])).encode(), 400),
        (json.dumps(exchange(parameters={"a": float("-inf")})).encode(), 400),
        (b'{"provider": "\xff"}', 400),
        (b'{"provider": "\xed\xa0\x80"}', 400),
        (b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", 400),
        (b'{"provider": "\\ud800"}', 422),
        (b'{"\\udc00": 1}', 422),
        (b'{"provider": "\\ud800', 400),
    ],
)
def test_what_is_no_json_is_400_and_lone_surrogates_are_422(
    client: TestClient, raw: bytes, status: int
) -> None:
    answer = client.post(PATH, content=raw)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"] == "validation_error"
    assert ("detail" in answer.json()) == (status == 422)


@pytest.mark.parametrize("number", ["1e999", "-1e999"])
def test_a_number_beyond_json_is_refused_wherever_it_stands(client: TestClient, number: str) -> None:
    body = json.dumps(exchange(parameters={"a": [{"b": 0.125}]})).replace("0.125", number)
    answer = client.post(PATH, content=body)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["body", "parameters", "a", "0", "b"]


def test_a_text_that_speaks_of_infinity_is_a_text(client: TestClient) -> None:
    assert client.post(PATH, json=exchange(function_name="NaN or Infinity")).status_code == 201


def test_nul_unicode_and_unknown_keys_of_blocks_are_kept_and_returned(client: TestClient) -> None:
    block = {"type": "text", "text": "a\x00b \U0001f600 é", "cache_control": {"type": "x", "n": 10**30}}
    message = {"role": "user", "content": [block, {"type": "hologram", "of": [1.0, None]}], "name": "\x00"}
    body = exchange(
        input={"type": "chat", "messages": [message], "tools": [{"a": 1}]},
        metadata={"k\x00": "\x00"},
        tags=["\x00"],
        unknown="tolerated",
    )
    answer = client.post(PATH, json=body)
    assert answer.status_code == 201
    found = read(client, answer.json()["id"])
    assert found["input"] == body["input"]
    assert found["metadata"] == body["metadata"]
    assert found["tags"] == ["\x00"]
    assert "unknown" not in found
    assert answer.json()["prompt_version"]["prompt_template"]["messages"][0] == message


def test_null_content_of_an_assistant_that_calls_tools_is_an_empty_list(client: TestClient) -> None:
    output = {
        "type": "chat",
        "messages": [{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}],
    }
    answer = client.post(PATH, json=exchange(output=output))
    assert answer.status_code == 201
    assert read(client, answer.json()["id"])["output"]["messages"][0]["content"] == []


def test_an_empty_message_list_and_a_completion_are_valid(client: TestClient) -> None:
    empty = {"type": "chat", "messages": []}
    text = {"type": "completion", "content": [{"type": "text", "text": "x"}], "template_format": "f-string"}
    both = client.post(PATH, json=exchange(input=text, output=text)).json()["prompt_version"]
    assert both["prompt_template"]["content"] == [*text["content"], *text["content"]]
    assert both["prompt_template"]["input_variables"] == []
    assert client.post(PATH, json=exchange(input=empty, output=empty)).status_code == 201
    mixed = client.post(PATH, json=exchange(input=text, output=empty))
    assert mixed.status_code == 201
    assert mixed.json()["prompt_version"] is None


@pytest.mark.parametrize(
    ("given", "scores"),
    [
        ({}, {}),
        ({"score": 0}, {"default": 0}),
        ({"score": 70, "score_name": "tone"}, {"tone": 70}),
        ({"score": 5, "score_name": None}, {"default": 5}),
    ],
)
def test_a_score_is_recorded_only_when_given(
    client: TestClient, given: dict[str, Any], scores: dict[str, int]
) -> None:
    log_id = client.post(PATH, json=exchange(**given)).json()["id"]
    assert read(client, log_id)["scores"] == scores


def publish(client: TestClient, name: str) -> int:
    template = {"type": "completion", "content": [{"type": "text", "text": "Say {x}"}]}
    body = {"prompt_template": {"prompt_name": name}, "prompt_version": {"prompt_template": template}}
    answer = client.post("/rest/prompt-templates", json=body)
    assert answer.status_code == 201
    return int(answer.json()["id"])


def test_a_template_must_be_known(client: TestClient, foreign_key: str) -> None:
    publish(client, "first")
    prompt_id = publish(client, "second")
    for wrong in (
        {"prompt_name": "third"},
        {"prompt_id": 99},
        {"prompt_id": prompt_id, "prompt_name": "first"},
        {"prompt_name": "second", "prompt_version_number": 2},
    ):
        answer = client.post(PATH, json=exchange(**wrong))
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), wrong
    known = exchange(prompt_id=prompt_id, prompt_version_number=1)
    found = read(client, client.post(PATH, json=known).json()["id"])
    assert (found["prompt_id"], found["prompt_name"], found["prompt_version_number"]) == (
        prompt_id,
        "second",
        1,
    )
    assert client.post(PATH, json=known, headers={"X-API-KEY": foreign_key}).status_code == 404


def test_the_order_of_checks_is_key_scope_body(client: TestClient, store: Store) -> None:
    assert client.post(PATH, content=b"{", headers={"X-API-KEY": "wrong"}).status_code == 401
    _, reader = create_key(store, scopes=["read"])
    assert client.post(PATH, content=b"{", headers={"X-API-KEY": reader}).status_code == 403
    _, ingester = create_key(store, scopes=["ingest"])
    headers = {"X-API-KEY": ingester}
    assert client.post(PATH, content=b"{", headers=headers).status_code == 400
    assert client.post(PATH, json=exchange(), headers=headers).status_code == 201
    assert client.get("/api/public/v2/requests/1", headers=headers).status_code == 403
    assert client.get(PATH).status_code == 405


def test_a_body_over_ten_megabytes_is_413(client: TestClient) -> None:
    answer = client.post(PATH, json=exchange(function_name="x" * 10_485_760))
    assert (answer.status_code, answer.json()["error"]) == (413, "payload_too_large")


def test_a_repeated_idempotency_key_gets_the_first_answer_and_records_nothing(
    client: TestClient, foreign_key: str
) -> None:
    headers = {"Idempotency-Key": "order-1"}
    body = exchange(score=3)
    first = client.post(PATH, json=body, headers=headers)
    again = client.post(PATH, content=json.dumps(body, indent=1), headers=headers)
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    for other in (exchange(score=4), exchange(), exchange(score=3, provider="x")):
        refused = client.post(PATH, json=other, headers=headers)
        assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    foreign = client.post(PATH, json=body, headers={**headers, "X-API-KEY": foreign_key})
    assert foreign.json()["id"] == 2
    assert client.post(PATH, json=body, headers={"Idempotency-Key": "order-2"}).json()["id"] == 3


def test_a_repeat_is_the_same_whatever_became_of_its_prompt_and_however_it_is_spelled(
    client: TestClient, application: Application
) -> None:
    publish(client, "greeting")
    spellings = [{}, {"price": 0}, {"price": 0.0}, {"tags": []}]
    bodies = [exchange(prompt_name="greeting", **more) for more in spellings]
    batches = [{"requests": [body, exchange()]} for body in bodies]
    headers = {"Idempotency-Key": "one"}
    first = client.post(PATH, json=bodies[0], headers=headers).json()
    together = client.post(
        "/api/public/v2/requests/batch", json=batches[0], headers={"Idempotency-Key": "two"}
    )
    patch = {"prompt_name": "welcome"}
    for change in (
        lambda: client.get("/health"),
        lambda: client.patch("/prompt-templates/greeting", json=patch),
        lambda: client.delete("/prompt-templates/welcome"),
    ):
        assert change().status_code == 200
        # what was found is remembered for a second
        application.state.service.logs.prompts._found.clear()
        for body, batch in zip(bodies, batches, strict=True):
            assert client.post(PATH, json=body, headers=headers).json() == first
            again = client.post(
                "/api/public/v2/requests/batch", json=batch, headers={"Idempotency-Key": "two"}
            )
            assert (again.status_code, again.json()) == (201, together.json())
    assert client.post(PATH, json=bodies[0], headers={"Idempotency-Key": "new"}).status_code == 404
    assert (
        client.post(PATH, json=exchange(prompt_name="greeting", model="x"), headers=headers).status_code
        == 404
    )


@pytest.mark.parametrize("key", ["", " ", "x" * 256, "a\x7fb"])
def test_an_idempotency_key_has_visible_characters(client: TestClient, key: str) -> None:
    answer = client.post(PATH, json=exchange(), headers={"Idempotency-Key": key})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["header", "Idempotency-Key"]


def test_a_log_of_another_workspace_is_unknown(client: TestClient, foreign_key: str) -> None:
    log_id = client.post(PATH, json=exchange()).json()["id"]
    headers = {"X-API-KEY": foreign_key}
    assert client.get(f"/api/public/v2/requests/{log_id}", headers=headers).status_code == 404
    for unknown in (log_id + 1, 0, -1, 2**63, "abc", "1_0", "1.0", "+1", "%201", f"{log_id}%20"):
        assert client.get(f"/api/public/v2/requests/{unknown}").status_code == 404
        assert client.delete(f"/api/public/v2/requests/{unknown}").status_code == 404
    assert client.get(f"/api/public/v2/requests/{log_id}").status_code == 200
