from starlette.testclient import TestClient

FOLDERS = "/api/public/v2/folders"


def made(client: TestClient, name: str, parent_id: int | None = None) -> int:
    answer = client.post(FOLDERS, json={"name": name, "parent_id": parent_id})
    assert answer.status_code == 201, answer.text
    body = answer.json()
    assert body["success"] is True
    assert body["folder"]["id"] == body["id"]
    return int(body["id"])


def resolved(client: TestClient, path: str) -> int | None:
    answer = client.get(f"{FOLDERS}/resolve-id", params={"path": path})
    assert answer.status_code in {200, 404}, answer.text
    return answer.json().get("id")


def test_a_path_names_the_folder_and_a_dot_in_a_name_is_escaped(client: TestClient) -> None:
    support = made(client, "Support")
    release = made(client, "v1.0", support)
    assert resolved(client, "Support") == support
    assert resolved(client, r"Support.v1\.0") == release
    assert resolved(client, "Support.v1.0") is None
    assert resolved(client, r"v1\.0") is None


def test_siblings_have_different_names_and_cousins_need_not(client: TestClient) -> None:
    a, b = made(client, "a"), made(client, "b")
    made(client, "x", a)
    made(client, "x", b)
    again = client.post(FOLDERS, json={"name": "x", "parent_id": a})
    assert (again.status_code, again.json()["error"]) == (409, "conflict")
    assert client.post(FOLDERS, json={"name": "a"}).status_code == 409


def test_folders_go_fifty_deep(client: TestClient) -> None:
    parent = None
    for depth in range(50):
        parent = made(client, f"d{depth}", parent)
    refused = client.post(FOLDERS, json={"name": "d50", "parent_id": parent})
    assert refused.status_code == 422
    assert resolved(client, ".".join(f"d{depth}" for depth in range(50))) == parent


def test_unknown_parents_and_bad_names_are_refused(client: TestClient, foreign_key: str) -> None:
    assert client.post(FOLDERS, json={"name": "x", "parent_id": 99}).status_code == 404
    assert client.post(FOLDERS, json={"name": "x", "parent_id": 2**70}).status_code == 422
    for body in ({"name": ""}, {"name": "x" * 256}, {}, {"name": 1}, {"name": "x", "colour": "red"}):
        assert client.post(FOLDERS, json=body).status_code == 422
    own = made(client, "own")
    stranger = {"X-API-KEY": foreign_key}
    assert client.post(FOLDERS, json={"name": "x", "parent_id": own}, headers=stranger).status_code == 404
    assert client.get(f"{FOLDERS}/resolve-id", params={"path": "own"}, headers=stranger).status_code == 404
    elsewhere = client.post(FOLDERS, json={"name": "x", "workspace_id": 2})
    assert (elsewhere.status_code, elsewhere.json()["message"]) == (400, "Invalid workspace_id")
    for path in ("", "a..b", "."):
        assert client.get(f"{FOLDERS}/resolve-id", params={"path": path}).status_code == 422
    assert client.get(f"{FOLDERS}/resolve-id").status_code == 422
