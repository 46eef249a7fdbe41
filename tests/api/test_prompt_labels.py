"""Release labels by their ids: created, moved, deleted, told of."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from storage.workspaces import create_key
from tests.api.test_audit import entries
from tests.api.test_templates import completion, published

HOOK = {
    "url": "https://93.184.215.14/",
    "event_types": [f"prompt_template_label_{what}" for what in ("created", "moved", "deleted")],
}


def create(client: TestClient, prompt_id: int, name: str = "prod", number: int = 1) -> Any:
    body = {"name": name, "prompt_version_number": number}
    return client.post(f"/prompts/{prompt_id}/label", json=body)


@pytest.fixture
def prompt(client: TestClient) -> dict[str, Any]:
    published(client, "a/b")
    return published(client, "a/b", completion("two"))


def test_a_label_is_created_moved_and_deleted(client: TestClient, prompt: dict[str, Any]) -> None:
    made = create(client, prompt["id"], "stage/eu west").json()
    assert made == {
        "success": True,
        "message": "Release label created",
        "prompt_id": prompt["id"],
        "prompt_version_id": prompt["prompt_version_id"] - 1,
        "prompt_version_number": 1,
        "release_label": "stage/eu west",
        "release_label_id": made["release_label_id"],
    }
    label = f"/prompt-labels/{made['release_label_id']}"

    def version() -> Any:
        body = {"label": "stage/eu west"}
        return client.post("/prompt-templates/a/b", json=body).json().get("version_number")

    assert version() == 1
    moved = client.patch(label, json={"prompt_version_number": 2})
    assert (moved.status_code, moved.json()["prompt_version_number"]) == (200, 2)
    assert moved.json()["release_label_id"] == made["release_label_id"]
    assert version() == 2
    assert client.delete(label).json()["success"] is True
    assert version() is None
    assert client.get("/prompt-templates/a%2Fb/labels").json()["release_labels"] == []
    assert client.delete(label).status_code == 404
    # a label of the same name is a new one
    assert create(client, prompt["id"], "stage/eu west").json()["release_label_id"] > made["release_label_id"]


def test_what_is_there_or_not_there_is_told(client: TestClient, prompt: dict[str, Any]) -> None:
    made = create(client, prompt["id"], number=2).json()
    again = create(client, prompt["id"])
    assert (again.status_code, again.json()["error"]) == (409, "conflict")
    assert f"id {made['release_label_id']}" in again.json()["message"]
    assert create(client, prompt["id"], "other", 3).status_code == 404
    assert create(client, prompt["id"] + 1).status_code == 404
    label = f"/prompt-labels/{made['release_label_id']}"
    assert client.patch(label, json={"prompt_version_number": 9}).status_code == 404
    assert client.get("/prompt-templates/a/b?label=prod").json()["version_number"] == 2
    for unknown in ("99", "x", "9" * 30):
        assert client.patch(f"/prompt-labels/{unknown}", json={}).status_code == 404
        assert client.delete(f"/prompt-labels/{unknown}").status_code == 404
        assert create(client, unknown).status_code == 404  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "x"},
        {"name": "", "prompt_version_number": 1},
        {"name": "l" * 513, "prompt_version_number": 1},
        {"name": "x", "prompt_version_number": 0},
        {"name": "x", "prompt_version_number": "1"},
        {"name": "x", "prompt_version_number": 2**63},
        {"name": "x", "prompt_version_number": 1, "more": 1},
    ],
)
def test_wrong_shapes_are_422(client: TestClient, prompt: dict[str, Any], body: dict[str, Any]) -> None:
    assert client.post(f"/prompts/{prompt['id']}/label", json=body).status_code == 422


def test_each_change_is_told_once_and_none_when_nothing_changes(
    client: TestClient, prompt: dict[str, Any]
) -> None:
    hook = client.post("/api/public/v2/webhooks", json=HOOK).json()["id"]
    label = f"/prompt-labels/{create(client, prompt['id'], 'l/1').json()['release_label_id']}"
    client.patch(label, json={"prompt_version_number": 2})
    for same in ({"prompt_version_number": 2}, {"prompt_version_number": None}, {}):
        assert client.patch(label, json=same).json()["prompt_version_number"] == 2
    client.delete(label)
    told = client.get(f"/api/public/v2/webhooks/{hook}/deliveries").json()["data"]
    assert [event["event_type"].rpartition("_")[2] for event in told] == ["deleted", "moved", "created"]
    kept = entries(client, kind="prompt_label")
    assert [entry["action"] for entry in kept] == ["delete", "update", "create"]
    assert kept[1]["details"] == {
        "name": "l/1",
        "prompt_id": prompt["id"],
        "version_number": 2,
        "old_version_number": 1,
    }


def test_a_key_that_may_not_write_prompts_may_not_label(client: TestClient, prompt: Any, store: Any) -> None:
    reader = {"X-API-KEY": create_key(store, scopes=["read", "write:folder"])[1]}
    body = {"name": "x", "prompt_version_number": 1}
    assert client.post(f"/prompts/{prompt['id']}/label", json=body, headers=reader).status_code == 403
    assert client.delete("/prompt-templates/a/b", headers=reader).status_code == 403
    assert client.patch("/prompt-templates/a/b", json={}, headers=reader).status_code == 403
