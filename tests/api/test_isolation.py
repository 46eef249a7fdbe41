"""Every route that takes an id, walked with the ids of another workspace: each answers 404 first of all.

A new path parameter needs a line in `MAKERS`: how an entity of its kind is made in the workspace `default`.
"""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from api.openapi import operations

Ids = dict[str, str]
Maker = Callable[[TestClient, Ids], Any]


def _prompt(client: TestClient, ids: Ids) -> str:
    blueprint = {"type": "completion", "content": [{"type": "text", "text": "Say {x}"}]}
    body = {"prompt_template": {"prompt_name": "a/b"}, "prompt_version": {"prompt_template": blueprint}}
    assert client.post("/rest/prompt-templates", json=body).status_code == 201
    return "a/b"


def _request(client: TestClient, _ids: Ids) -> int:
    example = client.get("/openapi.json").json()["components"]["schemas"]["LogRequest"]["examples"][0]
    answer = client.post("/log-request", json=example)
    assert answer.status_code == 201
    return int(answer.json()["id"])


# In order: a later one may use the ids of those before it.
MAKERS: dict[str, Maker] = {
    "identifier": _prompt,
    "request_id": _request,
}


@pytest.fixture
def ids(client: TestClient) -> Ids:
    """An id of each kind, all of the workspace `default`."""
    made: Ids = {}
    for name, make in MAKERS.items():
        made[name] = quote(str(make(client, made)), safe="")
    return made


def test_ids_of_another_workspace_are_unknown_on_every_route(
    client: TestClient, foreign_key: str, ids: Ids
) -> None:
    wrong = []
    walked = 0
    for method, path, operation in operations(client.get("/openapi.json").json()):
        names = re.findall(r"{(\w+)", path)
        if not names or "x-scope" not in operation:
            continue
        assert set(names) <= set(ids), f"teach MAKERS how to make {set(names) - set(ids)} for {path}"
        walked += 1
        url = re.sub(r"{(\w+)[^}]*}", lambda name: ids[name[1]], path)
        # a body that is no JSON: the id must be looked at first
        answer = client.request(method, url, content=b"{", headers={"X-API-KEY": foreign_key})
        if (answer.status_code, answer.json()["error"]) != (404, "not_found"):
            wrong.append(f"{method} {path}: {answer.status_code} {answer.text[:100]}")
        if method == "get" and client.get(url).status_code == 404:
            wrong.append(f"{method} {path}: the owner does not find it either")
    assert walked
    assert wrong == []
