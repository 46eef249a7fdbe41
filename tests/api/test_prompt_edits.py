"""Prompts renamed, tagged, moved and deleted; what logs say of them stays."""

from typing import Any

from starlette.testclient import TestClient

from tests.api.test_audit import entries
from tests.api.test_templates import PUBLISH, body_of, completion, published


def log(client: TestClient, **more: Any) -> Any:
    example = client.get("/openapi.json").json()["components"]["schemas"]["LogRequest"]["examples"][0]
    plain = {key: value for key, value in example.items() if not key.startswith("prompt_")}
    return client.post("/log-request", json=plain | more)


def test_a_deleted_prompt_is_gone_from_every_read_and_its_name_is_free(client: TestClient) -> None:
    pairs = [{"source": "s", "external_id": "1"}]
    body = body_of("a/b", completion("old {x}"), release_labels=["prod"], external_ids=pairs)
    body["prompt_template"]["tags"] = ["t"]
    one = client.post(PUBLISH, json=body).json()
    assert client.post("/prompt-templates/a/b", json={"label": "prod"}).status_code == 200
    (label,) = client.get("/prompt-templates/a/b/labels").json()["release_labels"]
    gone = client.delete("/prompt-templates/a%2Fb")
    assert (gone.status_code, gone.json()) == (200, {"success": True, "message": "Prompt deleted"})
    for path in ("a/b", "a%2Fb", str(one["id"]), "a/b/labels", f"{one['id']}?version=1", "a/b/diff?from=1"):
        assert client.get(f"/prompt-templates/{path}").status_code == 404
    assert client.post("/prompt-templates/a/b", json={}).status_code == 404
    assert client.delete("/prompt-templates/a/b").status_code == 404
    assert client.delete(f"/prompt-labels/{label['release_label_id']}").status_code == 404
    assert client.get("/prompt-templates").json()["total"] == 0
    again = published(client, "a/b", completion("new"), external_ids=pairs)
    assert again["id"] > one["id"]
    assert (again["version_number"], again["tags"], again["release_labels"]) == (1, [], [])
    assert again["prompt_version_id"] > one["prompt_version_id"]
    assert client.get(f"/prompt-templates/{one['id']}").status_code == 404


def test_logs_of_a_deleted_prompt_say_what_they_said(client: TestClient) -> None:
    one = published(client, "greet")
    logged = log(client, prompt_name="greet", prompt_version_number=1)
    assert logged.status_code == 201, logged.text
    client.delete("/prompt-templates/greet")
    published(client, "greet", completion("another"))
    found = client.get(f"/api/public/v2/requests/{logged.json()['id']}").json()
    assert (found["prompt_name"], found["prompt_id"], found["prompt_version_number"]) == (
        "greet",
        one["id"],
        1,
    )


def test_a_deletion_tells_of_its_labels_and_leaves_an_entry(client: TestClient) -> None:
    hook = {"url": "https://93.184.215.14/", "event_types": ["prompt_template_label_deleted"]}
    hook_id = client.post("/api/public/v2/webhooks", json=hook).json()["id"]
    one = published(client, "greet", release_labels=["prod", "qa"])
    client.delete("/prompt-templates/greet")
    assert len(client.get(f"/api/public/v2/webhooks/{hook_id}/deliveries").json()["data"]) == 2
    entry = entries(client, kind="prompt")[0]
    assert (entry["action"], entry["entity_id"]) == ("delete", str(one["id"]))
    assert entry["details"] == {"name": "greet", "last_version_number": 1}


def test_a_prompt_is_renamed_tagged_and_moved(client: TestClient) -> None:
    one = published(client, "greet", release_labels=["prod"])
    folder = client.post("/api/public/v2/folders", json={"name": "f"}).json()["id"]
    body = {"prompt_name": "hello/you", "tags": ["b", "a"], "folder_id": folder}
    edited = client.patch("/prompt-templates/greet", json=body).json()
    assert (edited["id"], edited["version_number"], edited["release_labels"]) == (one["id"], 1, ["prod"])
    assert (edited["prompt_name"], edited["tags"], edited["folder_id"]) == ("hello/you", ["b", "a"], folder)
    assert client.get("/prompt-templates/greet").status_code == 404
    assert client.get("/prompt-templates/hello/you").json() == edited
    # absent and null leave it, but a null folder is the root
    kept = client.patch("/prompt-templates/hello/you", json={"prompt_name": None, "tags": None}).json()
    assert kept == edited
    assert client.patch("/prompt-templates/hello/you", json={"folder_id": None}).json()["folder_id"] is None
    changed = [entry["details"]["changed"] for entry in entries(client, kind="prompt", action="update")]
    assert changed == [{"folder_id": None}, {"name": "hello/you", "tags": ["b", "a"], "folder_id": folder}]


def test_edits_that_cannot_be_are_refused(client: TestClient) -> None:
    published(client, "one")
    published(client, "two")
    for body, status in [
        ({"prompt_name": "two"}, 409),
        ({"prompt_name": ""}, 422),
        ({"prompt_name": "n" * 513}, 422),
        ({"folder_id": 99}, 404),
        ({"tags": "t"}, 422),
        ({"more": 1}, 422),
        ({"workspace_id": 99}, 400),
    ]:
        assert client.patch("/prompt-templates/one", json=body).status_code == status, body
    assert client.patch("/prompt-templates/one", json={"prompt_name": "one"}).status_code == 200
    assert client.patch("/prompt-templates/one", json={"prompt_name": "n" * 512}).status_code == 200
