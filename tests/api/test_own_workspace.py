"""`workspace_id` may stand in every body: the key's own changes nothing, another is refused."""

from functools import partial
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from tests.api.test_audit import changes
from tests.logs import exchange

# unknown keys of these are left unread; the workspace of a prompt stands beside its name
TOLERANT = {"post /rest/prompt-templates"}


@pytest.mark.slow
def test_every_body_that_changes_something_takes_the_keys_own_workspace_and_no_other(
    client: TestClient,
) -> None:
    taken = 0
    for name, call in changes(client):
        assert isinstance(call, partial)
        body = call.keywords["json"]
        if not isinstance(body, dict) or name in TOLERANT:
            continue

        def sent(workspace_id: Any, call: partial[Response] = call, body: dict[str, Any] = body) -> Response:
            return call(json=body | {"workspace_id": workspace_id})

        foreign = sent(999)
        assert (foreign.status_code, foreign.json().get("message")) == (400, "Invalid workspace_id"), name
        assert sent("1").status_code == 422, name
        own = sent(1)
        assert own.status_code < 300, f"{name}: {own.text}"
        taken += 1
    assert taken > 30


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/public/v2/requests/search", {}),
        ("/api/public/v2/requests/analytics", {}),
        ("/rest/track-score", {"request_id": 1, "score": 50}),
        ("/rest/track-metadata", {"request_id": 1, "metadata": {"a": "b"}}),
        ("/rest/create-group", {}),
        ("/api/public/v2/requests/batch", {"requests": [exchange()]}),
    ],
)
def test_so_do_searches_and_what_is_tracked(client: TestClient, path: str, body: dict[str, Any]) -> None:
    assert client.post("/log-request", json=exchange()).status_code == 201
    foreign = client.post(path, json=body | {"workspace_id": 2})
    assert (foreign.status_code, foreign.json()["message"]) == (400, "Invalid workspace_id")
    assert client.post(path, json=body | {"workspace_id": True}).status_code == 422
    for own in (1, None):
        assert client.post(path, json=body | {"workspace_id": own}).status_code < 300
