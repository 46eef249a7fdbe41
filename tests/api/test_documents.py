"""AB tests and input variable sets: the same for both."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from storage.store import Store
from storage.workspaces import create_key

PATHS = {"ab_test": "/rest/ab-tests", "input_variable_set": "/rest/input-variable-sets"}


@pytest.fixture(params=PATHS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(kind: str) -> str:
    return PATHS[kind]


def test_a_content_is_kept_as_it_was_sent(client: TestClient, path: str) -> None:
    contents: list[Any] = [{"a": [1, {"b": None}]}, [{"x": 1}], "text", 0, False, None, {}]
    for number, content in enumerate(contents):
        made = client.post(path, json={"name": f"{number}", "content": content})
        assert made.status_code == 201, made.text
        body = made.json()
        assert (body["success"], body["content"], body["folder_id"]) == (True, content, None)
        assert client.get(f"{path}/{body['id']}").json() == body
        assert client.get(path, params={"limit": 1}).json()["data"] == [body]


def test_names_are_taken_once_until_deleted(client: TestClient, path: str, foreign_key: str) -> None:
    body = {"name": "one", "content": {}}
    first = client.post(path, json=body).json()["id"]
    again = client.post(path, json=body)
    assert (again.status_code, again.json()["error"]) == (409, "conflict")
    stranger = {"X-API-KEY": foreign_key}
    assert client.post(path, json=body, headers=stranger).status_code == 201
    for other in PATHS.values():
        if other != path:
            assert client.post(other, json=body).status_code == 201
    assert client.delete(f"{path}/{first}", headers=stranger).status_code == 404
    assert client.delete(f"{path}/{first}").status_code == 200
    assert client.delete(f"{path}/{first}").status_code == 404
    assert client.get(f"{path}/{first}").status_code == 404
    assert client.get(path).json()["data"] == []
    assert client.post(path, json=body).json()["id"] > first


def test_they_are_listed_by_age_and_name(client: TestClient, path: str) -> None:
    for number in range(5):
        client.post(path, json={"name": f"n{number}", "content": number})
    first = client.get(path, params={"limit": 3}).json()
    second = client.get(path, params={"limit": 3, "cursor": first["pagination"]["next_cursor"]}).json()
    assert [one["content"] for one in first["data"] + second["data"]] == [4, 3, 2, 1, 0]
    assert [one["content"] for one in client.get(path, params={"name": "N3"}).json()["data"]] == [3]


def test_they_lie_in_folders(client: TestClient, kind: str, path: str) -> None:
    folder = client.post("/api/public/v2/folders", json={"name": "f"}).json()["id"]
    made = client.post(path, json={"name": "one", "content": {}, "folder_id": folder}).json()
    (entry,) = client.get("/api/public/v2/folders/entities", params={"folder_id": folder}).json()["data"]
    assert (entry["type"], entry["id"], entry["name"]) == (kind.upper(), made["id"], "one")
    assert client.post(path, json={"name": "two", "content": {}, "folder_id": 99}).status_code == 404


def test_what_fits_nothing_is_refused(client: TestClient, store: Store, kind: str, path: str) -> None:
    for body in ({}, {"name": "x"}, {"name": "", "content": 1}, {"name": "x" * 256, "content": 1}):
        assert client.post(path, json=body).status_code == 422
    assert client.post(path, json={"name": "x", "content": 1, "colour": "red"}).status_code == 422
    assert client.post(path, json={"name": "x", "content": 1, "workspace_id": 2}).status_code == 400
    for scope, status in (("read", 403), ("write:prompt", 403), (f"write:{kind}", 201)):
        headers = {"X-API-KEY": create_key(store, scopes=[scope])[1]}
        assert client.post(path, json={"name": "x", "content": 1}, headers=headers).status_code == status
