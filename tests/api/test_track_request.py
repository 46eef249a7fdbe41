"""`/track-request`: what the public client library sends of a call becomes a logged request."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.conftest import KEY

REQUEST = "/api/public/v2/requests"


def tracked(**changes: Any) -> dict[str, Any]:
    """A body as the client library sends it."""
    return {
        "function_name": "openai.chat.completions.create",
        "provider_type": "openai",
        "args": [],
        "kwargs": {
            "model": "gpt-4o-mini",
            "temperature": 0,
            "messages": [{"role": "user", "content": "6 * 7?"}],
        },
        "tags": None,
        "request_response": {
            "id": "chatcmpl-1",
            "model": "gpt-4o-mini-2024-07-18",
            "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "42"}}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 100},
        },
        "request_start_time": 1744640901.32603,
        "request_end_time": 1744640902.440252,
        "metadata": None,
        "span_id": None,
        "api_key": KEY,
        **changes,
    }


@pytest.fixture
def bare(client: TestClient) -> TestClient:
    """A client that sends no key in the header."""
    del client.headers["X-API-KEY"]
    return client


def read(client: TestClient, request_id: int) -> dict[str, Any]:
    return dict(client.get(f"{REQUEST}/{request_id}", headers={"X-API-KEY": KEY}).json())


def test_a_call_becomes_a_log_with_its_tokens_and_price(bare: TestClient) -> None:
    answer = bare.post("/track-request", json=tracked())
    assert answer.status_code == 200
    messages = answer.json()["prompt_blueprint"]["prompt_template"]["messages"]
    assert [one["content"][0]["text"] for one in messages] == ["6 * 7?", "42"]
    found = read(bare, answer.json()["request_id"])
    assert (found["provider"], found["model"]) == ("openai", "gpt-4o-mini")
    assert (found["input_tokens"], found["output_tokens"]) == (1000, 100)
    assert found["price"] == pytest.approx(0.00021)
    assert found["parameters"] == {"temperature": 0}
    assert found["function_name"] == "openai.chat.completions.create"
    assert found["request_start_time"] == "2025-04-14T14:28:21.326030Z"
    assert (found["status"], found["score"], found["metadata"]) == ("SUCCESS", None, {})


def test_a_run_of_a_prompt_carries_its_prompt_group_span_and_failure(bare: TestClient) -> None:
    header = {"X-API-KEY": KEY}
    blueprint = {"type": "completion", "content": [{"type": "text", "text": "Say {x}"}]}
    prompt = {"prompt_template": {"prompt_name": "greet"}, "prompt_version": {"prompt_template": blueprint}}
    made = bare.post("/rest/prompt-templates", json=prompt, headers=header).json()
    group_id = bare.post("/create-group", json={"api_key": KEY}).json()["id"]
    body = tracked(
        prompt_id=made["id"],
        prompt_version=1,
        prompt_input_variables={"x": 1},
        group_id=group_id,
        return_prompt_blueprint=True,
        span_id="ab12",
        metadata={"user": "ada"},
        tags=["t"],
        request_response={},
        status="ERROR",
        error_type="PROVIDER_TIMEOUT",
        error_message="late",
        score=0,
        something_newer=[1],
    )
    answer = bare.post("/track-request", json=body)
    assert answer.status_code == 200, answer.text
    found = read(bare, answer.json()["request_id"])
    assert (found["prompt_name"], found["prompt_version_number"]) == ("greet", 1)
    assert found["prompt_input_variables"] == {"x": 1}
    assert found["metadata"] == {"user": "ada", "group_id": str(group_id), "span_id": "ab12"}
    assert (found["status"], found["error_type"], found["error_message"]) == (
        "ERROR",
        "PROVIDER_TIMEOUT",
        "late",
    )
    assert (found["tags"], found["scores"], found["output"]["messages"]) == (["t"], {"default": 0}, [])


@pytest.mark.parametrize(
    ("changes", "status", "loc"),
    [
        ({"kwargs": []}, 422, "body.kwargs"),
        ({"tags": "x"}, 422, "body.tags"),
        ({"metadata": {"a": 1}}, 422, "body.metadata.a"),
        ({"request_start_time": None}, 422, "body.request_start_time"),
        ({"request_start_time": "yesterday"}, 422, "body.request_start_time"),
        ({"request_start_time": 1e300}, 422, "body.request_start_time"),
        ({"request_end_time": 1}, 422, "body.request_end_time"),
        ({"score": 101}, 422, "body.score"),
        ({"status": "FINE"}, 422, "body.status"),
        ({"error_type": "PROVIDER_TIMEOUT"}, 422, "body.error_type"),
        ({"prompt_version": 1}, 422, "body.prompt_version_number"),
        ({"prompt_id": 99}, 404, None),
        ({"group_id": 99}, 404, None),
        ({"api_key": "wrong"}, 401, None),
    ],
)
def test_what_does_not_fit_is_refused(
    bare: TestClient, changes: dict[str, Any], status: int, loc: str | None
) -> None:
    answer = bare.post("/track-request", json=tracked(**changes))
    assert answer.status_code == status, answer.text
    if loc:
        assert ".".join(answer.json()["detail"][0]["loc"]).startswith(loc)


@pytest.mark.parametrize(
    "response", [None, "text", 7, [], {"choices": 7}, {"choices": [None, {"message": 3}]}]
)
def test_an_answer_of_any_shape_is_kept(bare: TestClient, response: Any) -> None:
    answer = bare.post("/track-request", json=tracked(request_response=response))
    assert answer.status_code == 200, answer.text
