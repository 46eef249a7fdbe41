from concurrent.futures import ThreadPoolExecutor

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


def test_a_folder_is_renamed_and_moved_with_what_lies_in_it(client: TestClient) -> None:
    a, b = made(client, "a"), made(client, "b")
    inner = made(client, "inner", a)
    renamed = client.patch(f"{FOLDERS}/{a}", json={"name": "v1.0"}).json()["folder"]
    assert (renamed["id"], renamed["name"], renamed["parent_id"]) == (a, "v1.0", None)
    assert resolved(client, r"v1\.0.inner") == inner
    assert resolved(client, "a") is None
    both = client.patch(f"{FOLDERS}/{a}", json={"name": "c", "parent_id": b})
    assert both.status_code == 200
    assert resolved(client, "b.c.inner") == inner
    assert client.get(f"{FOLDERS}/{inner}").json()["folder"]["parent_id"] == a
    # absent and null names stay, a null parent is the root
    assert client.patch(f"{FOLDERS}/{a}", json={"name": None, "parent_id": None}).status_code == 200
    assert resolved(client, "c.inner") == inner


def test_a_folder_takes_no_name_of_a_sibling(client: TestClient) -> None:
    a, b = made(client, "a"), made(client, "b")
    made(client, "a", b)
    for body in ({"name": "b"}, {"parent_id": b}, {"name": "a", "parent_id": b}):
        answer = client.patch(f"{FOLDERS}/{a}", json=body)
        assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    assert client.patch(f"{FOLDERS}/{a}", json={"name": "d", "parent_id": b}).status_code == 200


def test_a_patch_that_changes_nothing_leaves_no_entry(client: TestClient) -> None:
    a = made(client, "a")
    before = client.get(f"{FOLDERS}/{a}").json()["folder"]
    for body in ({}, {"name": None}, {"name": "a"}, {"parent_id": None}, {"name": "a", "parent_id": None}):
        assert client.patch(f"{FOLDERS}/{a}", json=body).json()["folder"] == before
    assert (
        client.get("/api/public/v2/audit", params={"kind": "folder", "action": "update"}).json()["count"] == 0
    )


def test_patches_that_fit_nothing_are_refused(client: TestClient, foreign_key: str) -> None:
    a = made(client, "a")
    stranger = {"X-API-KEY": foreign_key}
    theirs = client.post(FOLDERS, json={"name": "theirs"}, headers=stranger).json()["id"]
    for parent in (99, theirs):
        assert client.patch(f"{FOLDERS}/{a}", json={"parent_id": parent}).status_code == 404
    for body in ({"name": ""}, {"name": "x" * 256}, {"name": 1}, {"parent_id": "1"}, {"colour": "red"}):
        assert client.patch(f"{FOLDERS}/{a}", json=body).status_code == 422
    assert client.patch(f"{FOLDERS}/{a}", json={"workspace_id": 2}).status_code == 400
    assert client.patch(f"{FOLDERS}/99", json={"name": "x"}).status_code == 404


def test_an_empty_folder_is_deleted_and_its_name_is_free(client: TestClient) -> None:
    a = made(client, "a")
    inner = made(client, "inner", a)
    refused = client.delete(f"{FOLDERS}/{a}")
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    assert client.delete(f"{FOLDERS}/{inner}").json() == {"success": True, "message": "Folder deleted"}
    assert client.delete(f"{FOLDERS}/{inner}").status_code == 404
    assert client.delete(f"{FOLDERS}/{a}").status_code == 200
    assert made(client, "a") > inner


def test_of_two_who_make_one_sibling_at_once_one_is_refused(client: TestClient) -> None:
    parent = made(client, "parent")
    for number in range(5):
        body = {"name": f"x{number}", "parent_id": parent}
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(client.post, FOLDERS, json=body) for _ in range(4)]
        assert sorted(answer.result().status_code for answer in asked) == [201, 409, 409, 409]


def test_of_two_moves_into_each_other_one_is_refused(client: TestClient) -> None:
    for number in range(5):
        a, b = made(client, f"a{number}"), made(client, f"b{number}")
        with ThreadPoolExecutor(2) as pool:
            one = pool.submit(client.patch, f"{FOLDERS}/{a}", json={"parent_id": b})
            other = pool.submit(client.patch, f"{FOLDERS}/{b}", json={"parent_id": a})
        assert sorted([one.result().status_code, other.result().status_code]) == [200, 422]


def test_names_hold_whatever_was_sent(client: TestClient) -> None:
    for name in ("a.b", "..", "a\\b", "a/b", "ünï 🙂", "a\x00b", " ", "%", "'; --"):
        path = name.replace("\\", "\\\\").replace(".", "\\.")
        folder = made(client, name)
        assert resolved(client, path) == folder
    assert resolved(client, "a") is None
    # no path is deeper than the tree may be
    assert resolved(client, ".".join("x" * 200)) is None
