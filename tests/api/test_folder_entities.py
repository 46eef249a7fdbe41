"""What lies in folders: listed with its kind, moved all or none (E28)."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from storage.domain.entities import EntityType
from storage.engine.registry_schema import dataset_groups, reports
from storage.store import Store
from storage.workspaces import create_key, find_key
from tests.api.test_folders import FOLDERS, made
from tests.conftest import KEY

ENTITIES = f"{FOLDERS}/entities"
AUDIT = "/api/public/v2/audit"


def prompt(client: TestClient, name: str, kind: str = "completion", **headers: str) -> int:
    content = [{"type": "text", "text": "Say it"}]
    blueprint = (
        {"type": "completion", "content": content}
        if kind == "completion"
        else {"type": "chat", "messages": [{"role": "user", "content": content}]}
    )
    body = {"prompt_template": {"prompt_name": name}, "prompt_version": {"prompt_template": blueprint}}
    answer = client.post("/rest/prompt-templates", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    return int(answer.json()["id"])


def workflow(client: TestClient, name: str, **headers: str) -> int:
    answer = client.post("/rest/workflows", json={"name": name, "nodes": []}, headers=headers)
    assert answer.status_code == 201, answer.text
    return int(answer.json()["id"])


def named(path: str) -> Callable[..., int]:
    def make(client: TestClient, name: str, **headers: str) -> int:
        answer = client.post(path, json={"name": name, "content": {}}, headers=headers)
        assert answer.status_code == 201, answer.text
        return int(answer.json()["id"])

    return make


ab_test, variable_set = named("/rest/ab-tests"), named("/rest/input-variable-sets")


def inserted(store: Store, table: Any, name: str, key: str = KEY) -> int:
    """Make what no route of this release makes."""
    facts = find_key(store, key)
    assert facts is not None
    who = facts.principal
    values = {
        "workspace_id": who.workspace_id,
        "user_id": who.user_id,
        "name": name,
        "created_at": store.now(),
        "updated_at": store.now(),
    }
    with store.catalog.transaction() as connection:
        return int(connection.execute(table.insert().values(values)).inserted_primary_key[0])


@pytest.fixture
def one_of_each(client: TestClient, store: Store) -> list[dict[str, Any]]:
    return [
        {"type": "FOLDER", "id": made(client, "f")},
        {"type": "PROMPT", "id": prompt(client, "chat", "chat")},
        {"type": "SNIPPET", "id": prompt(client, "snippet")},
        {"type": "WORKFLOW", "id": workflow(client, "w")},
        {"type": "DATASET", "id": inserted(store, dataset_groups, "d")},
        {"type": "REPORT", "id": inserted(store, reports, "r")},
        {"type": "AB_TEST", "id": ab_test(client, "a")},
        {"type": "INPUT_VARIABLE_SET", "id": variable_set(client, "v")},
    ]


def listed(client: TestClient, **query: Any) -> list[tuple[str, Any]]:
    """Walk the whole list by cursor."""
    found: list[tuple[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        answer = client.get(ENTITIES, params=query | cursor)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert body["count"] == len(body["data"])
        found += [(entry["type"], entry["id"]) for entry in body["data"]]
        if not body["pagination"]["has_more"]:
            return found
        cursor = {"cursor": body["pagination"]["next_cursor"]}


def moved(client: TestClient, entities: list[dict[str, Any]], to: int | None, **headers: str) -> Any:
    return client.post(ENTITIES, json={"entities": entities, "folder_id": to}, headers=headers)


def audited(client: TestClient) -> set[tuple[str, str]]:
    found = client.get(AUDIT, params={"action": "move", "limit": 100}).json()["data"]
    return {(entry["kind"], entry["entity_id"]) for entry in found}


def test_all_eight_kinds_move_together_and_back(
    client: TestClient, one_of_each: list[dict[str, Any]]
) -> None:
    target = made(client, "target")
    answer = moved(client, one_of_each, target)
    assert (answer.status_code, answer.json()["moved_count"]) == (200, 8)
    # a snippet is a prompt, listed as one unless asked for
    there = {(one["type"].replace("SNIPPET", "PROMPT"), one["id"]) for one in one_of_each}
    assert set(listed(client, folder_id=target)) == there
    assert listed(client) == [("FOLDER", target)]
    assert audited(client) == {(one["type"].lower(), str(one["id"])) for one in one_of_each}
    assert moved(client, one_of_each, None).json()["moved_count"] == 8
    assert listed(client, folder_id=target) == []


def test_the_type_of_an_entity_is_a_folder_unless_it_says_otherwise(client: TestClient) -> None:
    a, b = made(client, "a"), made(client, "b")
    assert client.post(ENTITIES, json={"entities": [{"id": a}], "folder_id": b}).json()["moved_count"] == 1
    assert listed(client, folder_id=b) == [("FOLDER", a)]
    # without a destination: to the root
    assert client.post(ENTITIES, json={"entities": [{"id": a}]}).status_code == 200
    assert listed(client) == [("FOLDER", a), ("FOLDER", b)]


def test_one_that_is_foreign_or_unknown_keeps_all_where_they_are(
    client: TestClient, store: Store, foreign_key: str, one_of_each: list[dict[str, Any]]
) -> None:
    stranger = {"X-API-KEY": foreign_key}
    target = made(client, "target")
    foreign_folder = client.post(FOLDERS, json={"name": "theirs"}, headers=stranger).json()["id"]
    foreign = {
        "FOLDER": foreign_folder,
        "PROMPT": prompt(client, "theirs", **stranger),
        "SNIPPET": prompt(client, "their snippet", **stranger),
        "WORKFLOW": workflow(client, "theirs", **stranger),
        "DATASET": inserted(store, dataset_groups, "theirs", foreign_key),
        "REPORT": inserted(store, reports, "theirs", foreign_key),
        "AB_TEST": ab_test(client, "theirs", **stranger),
        "INPUT_VARIABLE_SET": variable_set(client, "theirs", **stranger),
    }
    before = listed(client)
    for kind, id_ in foreign.items():
        for wrong in (id_, 999_999):
            answer = moved(client, [*one_of_each, {"type": kind, "id": wrong}], target)
            assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), (kind, wrong)
    assert moved(client, one_of_each, foreign_folder).status_code == 404
    assert listed(client) == before
    assert listed(client, folder_id=target) == []
    assert audited(client) == set()


def test_a_key_needs_write_for_every_kind_it_moves(
    client: TestClient, store: Store, one_of_each: list[dict[str, Any]]
) -> None:
    target = made(client, "target")
    before = listed(client)
    for one in one_of_each:
        kind = one["type"].lower()
        narrow = {"X-API-KEY": create_key(store, scopes=[f"write:{kind}"])[1]}
        for other in one_of_each:
            answer = moved(client, [one, other], target, **narrow)
            if other is one:
                assert answer.status_code == 200, answer.text
                assert moved(client, [one], None).status_code == 200
            else:
                assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
                assert other["type"].lower() in answer.json()["message"]
        assert listed(client) == before
    for scope in ("read", "ingest"):
        reader = {"X-API-KEY": create_key(store, scopes=[scope])[1]}
        # before the body is looked at
        assert client.post(ENTITIES, content=b"{", headers=reader).status_code == 403
    writer = {"X-API-KEY": create_key(store, scopes=["write"])[1]}
    assert moved(client, one_of_each, target, **writer).json()["moved_count"] == 8


def test_an_entity_named_twice_counts_once_and_one_that_lies_there_leaves_no_entry(
    client: TestClient,
) -> None:
    target, snippet = made(client, "target"), prompt(client, "s")
    twice = [{"type": "PROMPT", "id": snippet}, {"type": "SNIPPET", "id": snippet}]
    assert moved(client, [*twice, *twice], target).json()["moved_count"] == 1
    entries = client.get(AUDIT, params={"action": "move"}).json()["count"]
    assert moved(client, twice, target).json()["moved_count"] == 1
    assert client.get(AUDIT, params={"action": "move"}).json()["count"] == entries


def test_a_chat_template_is_no_snippet(client: TestClient) -> None:
    chat = prompt(client, "c", "chat")
    assert moved(client, [{"type": "SNIPPET", "id": chat}], None).status_code == 404
    assert moved(client, [{"type": "PROMPT", "id": chat}], None).status_code == 200


def test_a_folder_goes_neither_into_itself_nor_below(client: TestClient) -> None:
    a = made(client, "a")
    b = made(client, "b", a)
    c = made(client, "c", b)
    for to in (a, b, c):
        answer = moved(client, [{"id": a}], to)
        assert (answer.status_code, answer.json()["error"]) == (422, "validation_error")
        assert answer.json()["detail"][0]["loc"] == ["body", "folder_id"]
        assert client.patch(f"{FOLDERS}/{a}", json={"parent_id": to}).status_code == 422
    assert listed(client, folder_id=b) == [("FOLDER", c)]
    # a folder and what lies in it become neighbours
    other = made(client, "other")
    assert moved(client, [{"id": a}, {"id": b}], other).json()["moved_count"] == 2
    assert listed(client, folder_id=other) == [("FOLDER", a), ("FOLDER", b)]
    assert listed(client, folder_id=a) == []


def test_two_folders_of_one_name_do_not_meet(client: TestClient) -> None:
    a, b, target = made(client, "a"), made(client, "b"), made(client, "target")
    same_a, same_b, same_c = made(client, "same", a), made(client, "same", b), made(client, "same", target)
    note = prompt(client, "note")
    for entities in (
        [{"id": same_a}, {"type": "PROMPT", "id": note}],
        [{"type": "PROMPT", "id": note}, {"id": same_a}, {"id": same_b}],
    ):
        answer = moved(client, entities, target)
        assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    assert moved(client, [{"id": same_a}, {"id": same_b}], None).status_code == 409
    assert listed(client, folder_id=target) == [("FOLDER", same_c)]
    assert ("PROMPT", note) in listed(client)
    # one that lies there already is not in its own way
    assert moved(client, [{"id": same_c}], target).json()["moved_count"] == 1


def test_nothing_is_moved_deeper_than_fifty(client: TestClient) -> None:
    deep: list[int] = []
    for depth in range(48):
        deep.append(made(client, f"d{depth}", deep[-1] if deep else None))
    top = made(client, "top")
    middle = made(client, "middle", top)
    made(client, "bottom", middle)
    note = prompt(client, "note")
    both = [{"id": top}, {"type": "PROMPT", "id": note}]
    refused = moved(client, both, deep[-1])
    assert refused.status_code == 422
    assert client.patch(f"{FOLDERS}/{top}", json={"parent_id": deep[-1]}).status_code == 422
    assert ("PROMPT", note) in listed(client)
    # two levels fit where three do not
    assert moved(client, [{"id": middle}], deep[-1]).status_code == 200
    # and what is no folder lies in the deepest one too
    (bottom,) = listed(client, folder_id=middle)
    assert moved(client, [{"type": "PROMPT", "id": note}], bottom[1]).status_code == 200


NO_LISTS: list[dict[str, Any]] = [
    {},
    {"entities": []},
    {"entities": [{"id": 0}]},
    {"entities": [{"id": "1"}]},
    {"entities": [{"id": 1.0}]},
    {"entities": [{"id": 2**63}]},
    {"entities": [{"type": "PROMPT"}]},
    {"entities": [{"id": 1, "type": "TABLE"}]},
    {"entities": [{"id": 1, "type": "prompt"}]},
    {"entities": [{"id": 1, "type": ["PROMPT"]}]},
    {"entities": [{"id": 1, "kind": "PROMPT"}]},
    {"entities": [{"id": 1}] * 1_001},
    {"entities": {"id": 1}},
    {"entities": [{"id": 1}], "folder_id": "2"},
    {"entities": [{"id": 1}], "folder": 2},
]


def test_what_is_no_list_of_entities_is_refused(client: TestClient) -> None:
    made(client, "a")
    for body in NO_LISTS:
        assert client.post(ENTITIES, json=body).status_code == 422, body
    assert client.post(ENTITIES, json={"entities": [{"id": 1}], "workspace_id": 2}).status_code == 400


def test_contents_are_listed_by_kind_and_age_there_and_back(
    client: TestClient, one_of_each: list[dict[str, Any]]
) -> None:
    table = client.post("/api/public/v2/tables", json={"title": "Table of f"}).json()["table"]["id"]
    everything = [(one["type"].replace("SNIPPET", "PROMPT"), one["id"]) for one in one_of_each]
    everything.append(("TABLE", table))
    assert listed(client) == everything
    assert listed(client, limit=2) == everything
    assert listed(client, limit=4, order="desc") == everything[::-1]
    first = client.get(ENTITIES, params={"limit": 3}).json()
    second = client.get(ENTITIES, params={"limit": 3, "cursor": first["pagination"]["next_cursor"]}).json()
    back = client.get(ENTITIES, params={"limit": 3, "cursor": second["pagination"]["prev_cursor"]}).json()
    assert back["data"] == first["data"]
    entry = first["data"][0]
    assert entry == {
        "id": one_of_each[0]["id"],
        "type": "FOLDER",
        "name": "f",
        "folder_id": None,
        "created_at": entry["created_at"],
        "updated_at": entry["updated_at"],
    }


def test_contents_are_filtered_by_kind_and_name(
    client: TestClient, one_of_each: list[dict[str, Any]]
) -> None:
    ids = {one["type"]: one["id"] for one in one_of_each}
    for kind in set(EntityType) - {"TABLE", "PROMPT"}:
        assert listed(client, type=kind) == [(kind, ids[kind])]
        assert listed(client, filter_type=kind) == [(kind, ids[kind])]
    both = listed(client, type=["PROMPT", "SNIPPET", "REPORT"])
    assert both == [("PROMPT", ids["PROMPT"]), ("PROMPT", ids["SNIPPET"]), ("REPORT", ids["REPORT"])]
    assert listed(client, name="SNIP") == [("PROMPT", ids["SNIPPET"])]
    assert listed(client, search_query="cha") == [("PROMPT", ids["PROMPT"])]
    made(client, "100%")
    assert [kind for kind, _ in listed(client, name="%")] == ["FOLDER"]
    answer = client.get(ENTITIES, params={"type": "FOLDER", "name": "f"}).json()
    assert answer["filters"] == {"type": ["FOLDER"], "name": "f"}


def test_lists_of_nothing_that_is_there_are_refused(client: TestClient, foreign_key: str) -> None:
    own = made(client, "own")
    made(client, "a")
    stranger = {"X-API-KEY": foreign_key}
    assert client.get(ENTITIES, params={"folder_id": 99}).status_code == 404
    assert client.get(ENTITIES, params={"folder_id": own}, headers=stranger).status_code == 404
    assert client.get(ENTITIES, headers=stranger).json()["data"] == []
    for query in ({"type": "folder"}, {"limit": 0}, {"limit": 101}, {"folder_id": 0}, {"order": "up"}):
        assert client.get(ENTITIES, params=query).status_code == 422
    assert client.get(ENTITIES, params={"workspace_id": 2}).status_code == 400
    cursor = client.get(ENTITIES, params={"limit": 1}).json()["pagination"]["next_cursor"]
    for other in ({"name": "a"}, {"type": "FOLDER"}, {"folder_id": own}, {"order": "desc"}):
        answer = client.get(ENTITIES, params={"limit": 1, "cursor": cursor} | other)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_cursor")


def test_what_was_deleted_from_a_folder_lies_there_no_more(client: TestClient) -> None:
    folder = made(client, "x")
    table = client.post("/api/public/v2/tables", json={"folder_id": folder}).json()["table"]["id"]
    kept = workflow(client, "w")
    moved(client, [{"type": "WORKFLOW", "id": kept}], folder)
    answer = client.delete(f"{FOLDERS}/{folder}")
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    assert answer.json()["message"].endswith("workflow, table")
    client.delete(f"/api/public/v2/tables/{table}")
    assert client.delete(f"/workflows/{kept}").status_code == 200
    assert listed(client, folder_id=folder) == []
    assert client.delete(f"{FOLDERS}/{folder}").status_code == 200
    assert client.get(ENTITIES, params={"folder_id": folder}).status_code == 404
    # what comes back after its folder is gone does so at the root
    assert client.post(f"/api/public/v2/tables/{table}/undelete").status_code == 200
    assert listed(client) == [("TABLE", table)]
