"""Workflows: versions kept whole, listed by every filter and order (E27), deleted."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from starlette.testclient import TestClient

from storage.domain.keys import Principal
from storage.domain.prompts import ExternalId
from storage.domain.workflows import SavedWorkflow, WorkflowQuery
from storage.engine.registry_schema import workflows as workflows_table
from storage.store import Store
from storage.workflows import list_workflows, save_workflow
from storage.workspaces import create_key, find_key
from tests.conftest import KEY

START = datetime(2026, 1, 5, tzinfo=UTC)
SORTS = ("created_at", "updated_at", "name", "id")


def saved(client: TestClient, name: str, **more: Any) -> dict[str, Any]:
    answer = client.post("/rest/workflows", json={"name": name, "nodes": []} | more)
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def principal(store: Store, key: str) -> Principal:
    facts = find_key(store, key)
    assert facts is not None
    return facts.principal


@pytest.fixture
def many(client: TestClient, store: Store) -> list[dict[str, Any]]:
    """Twelve workflows of two users, some of one moment; what E27 lists, newest first."""
    people = [create_key(store, user=user, email=f"{user}@Example.com")[1] for user in ("ann", "bob")]
    whose = [principal(store, key) for key in people]
    for number in range(12):
        pairs = (ExternalId("git", f"w{number}"),) if number % 3 == 0 else ()
        version = save_workflow(
            store,
            whose[number % 2],
            SavedWorkflow({"nodes": []}, name=f"w{(number * 7) % 12:02}", external_ids=pairs),
        )
        times = {
            "created_at": START + timedelta(days=number // 3),
            "updated_at": START + timedelta(days=20 - number // 2),
        }
        with store.catalog.transaction() as connection:
            of_it = workflows_table.c.id == version.workflow.id
            connection.execute(workflows_table.update().where(of_it).values(times))
    return list(client.get("/workflows", params={"per_page": 100}).json()["items"])


def names(client: TestClient, **query: Any) -> list[str]:
    answer = client.get("/workflows", params={"per_page": 100} | query)
    assert answer.status_code == 200, answer.text
    return [item["name"] for item in answer.json()["items"]]


def test_a_version_is_kept_whole_and_never_changes(client: TestClient) -> None:
    definition = {
        "nodes": [{"name": "a", "deep": {"x": [1, 2.5, None, "\x00", "ü"]}, "big": 2**70}],
        "edges": [{"from": "a", "to": "a"}],
        "required_input_variables": {"q": "string"},
        "layout": {"a": [1, 2]},
    }
    first = saved(client, "w", **definition, commit_message="one")
    assert {key: first[key] for key in definition} == definition
    assert (first["version_number"], first["latest_version_number"], first["commit_message"]) == (1, 1, "one")
    second = saved(client, "w", nodes=[{"name": "b"}])
    assert (second["id"], second["version_number"]) == (first["id"], 2)
    assert second["workflow_version_id"] != first["workflow_version_id"]
    assert "layout" not in second
    again = client.get("/workflows/w", params={"version": 1}).json()
    assert {key: again[key] for key in definition} == definition
    assert again["latest_version_number"] == 2
    assert client.get("/workflows/w").json() == second


def test_what_was_read_can_be_saved_again(client: TestClient) -> None:
    saved(client, "w", nodes=[{"name": "a"}], layout={"x": 1}, release_labels=["prod"])
    read = client.get("/workflows/w").json()
    del read["workflow_id"], read["workflow_name"]
    answer = client.post("/rest/workflows", json=read)
    assert answer.status_code == 201, answer.text
    version = answer.json()
    assert (version["version_number"], version["nodes"], version["layout"]) == (2, [{"name": "a"}], {"x": 1})


def test_versions_are_of_the_workflow_that_is_named(client: TestClient, foreign_key: str) -> None:
    first = saved(client, "w")
    for other in ({"workflow_id": first["id"]}, {"workflow_name": "w"}):
        answer = client.post("/rest/workflows", json={"nodes": []} | other)
        assert (answer.status_code, answer.json()["id"]) == (201, first["id"])
    stranger = {"X-API-KEY": foreign_key}
    for unknown in ({"workflow_id": 99}, {"workflow_name": "v"}, {"workflow_id": first["id"]}):
        headers = stranger if unknown.get("workflow_id") == first["id"] else {}
        answer = client.post("/rest/workflows", json={"nodes": []} | unknown, headers=headers)
        assert answer.status_code == 404
    # names are of a workspace
    theirs = client.post("/rest/workflows", json={"name": "w", "nodes": []}, headers=stranger).json()
    assert theirs["version_number"] == 1


def test_names_win_over_ids_and_hold_slashes(client: TestClient) -> None:
    one = saved(client, "a/b c")
    other = saved(client, str(one["id"]))
    assert client.get(f"/workflows/{one['id']}").json()["id"] == other["id"]
    assert client.get("/workflows/a/b c").json()["id"] == one["id"]
    assert client.get("/workflows/a%2Fb%20c").json()["id"] == one["id"]
    assert client.get(f"/workflows/{other['id']}").json()["name"] == str(one["id"])


def test_labels_are_made_and_moved_with_a_version(client: TestClient) -> None:
    saved(client, "w", release_labels=["prod", "eu/west"])
    second = saved(client, "w", release_labels=["prod", "prod"])
    assert second["release_labels"] == ["eu/west", "prod"]
    labels = client.get("/workflows/w/labels").json()["release_labels"]
    assert [(one["release_label"], one["workflow_version_number"]) for one in labels] == [
        ("eu/west", 1),
        ("prod", 2),
    ]
    assert client.get("/workflows/w", params={"label": "prod"}).json()["version_number"] == 2
    assert client.get("/workflows/w", params={"label": "eu/west"}).json()["version_number"] == 1
    for query in ({"label": "dev"}, {"version": 3}):
        assert client.get("/workflows/w", params=query).status_code == 404


def test_external_ids_belong_to_one_workflow(client: TestClient) -> None:
    pair = {"source": "git", "external_id": "a"}
    first = saved(client, "w", external_ids=[pair])
    assert first["external_ids"] == [pair]
    # a version that sends none, or the same, detaches nothing
    assert saved(client, "w")["external_ids"] == [pair]
    assert saved(client, "w", external_ids=[pair])["external_ids"] == [pair]
    refused = client.post("/rest/workflows", json={"name": "v", "nodes": [], "external_ids": [pair]})
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    assert names(client) == ["w"]
    client.delete("/workflows/w")
    assert saved(client, "v", external_ids=[pair])["external_ids"] == [pair]


def test_two_saves_at_once_are_two_versions(client: TestClient) -> None:
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(saved, client, "w") for _ in range(8)]
    assert sorted(one.result()["version_number"] for one in asked) == list(range(1, 9))


NO_VERSIONS: list[dict[str, Any]] = [
    {},
    {"name": "w"},
    {"nodes": []},
    {"name": "", "nodes": []},
    {"name": "x" * 513, "nodes": []},
    {"name": "w", "workflow_name": "w", "nodes": []},
    {"name": "w", "nodes": {}},
    {"name": "w", "nodes": ["a"]},
    {"name": "w", "nodes": [], "edges": [1]},
    {"name": "w", "nodes": [], "commit_message": "x" * 73},
    {"name": "w", "nodes": [], "release_labels": [""]},
    {"name": "w", "nodes": [], "external_ids": [{"source": "git"}]},
    {"name": "w", "nodes": [], "external_ids": [{"source": "x" * 129, "external_id": "a"}]},
    {"name": "w", "nodes": [], "folder_id": "1"},
    {"workflow_id": 0, "nodes": []},
]


def test_what_is_no_version_is_refused(client: TestClient) -> None:
    for body in NO_VERSIONS:
        assert client.post("/rest/workflows", json=body).status_code == 422, body
    assert names(client) == []


def test_the_longest_values_are_taken(client: TestClient, foreign_key: str) -> None:
    body = {"commit_message": "x" * 72, "release_labels": ["l" * 512]}
    pair = {"source": "s" * 128, "external_id": "i" * 512}
    assert saved(client, "n" * 512, **body, external_ids=[pair])["external_ids"] == [pair]
    folder = client.post("/api/public/v2/folders", json={"name": "f"}, headers={"X-API-KEY": foreign_key})
    foreign = {"name": "w", "nodes": [], "folder_id": folder.json()["id"]}
    assert client.post("/rest/workflows", json=foreign).status_code == 404
    assert (
        client.post("/rest/workflows", json={"name": "w", "nodes": [], "workspace_id": 2}).status_code == 400
    )


def test_a_deleted_workflow_is_gone_and_its_name_free(client: TestClient, foreign_key: str) -> None:
    first = saved(client, "w")
    assert client.delete("/workflows/w", headers={"X-API-KEY": foreign_key}).status_code == 404
    assert client.delete(f"/workflows/{first['id']}").json()["success"] is True
    for path in ("/workflows/w", f"/workflows/{first['id']}", "/workflows/w/labels"):
        assert client.get(path).status_code == 404
    assert client.delete("/workflows/w").status_code == 404
    assert names(client) == []
    second = saved(client, "w")
    assert second["id"] > first["id"]
    assert second["version_number"] == 1


def test_a_list_item_has_the_fields_of_a_workflow(client: TestClient) -> None:
    pair = {"source": "git", "external_id": "a"}
    version = saved(client, "w", release_labels=["prod"], external_ids=[pair], nodes=[{"name": "a"}])
    (item,) = client.get("/workflows").json()["items"]
    assert item == {
        "id": version["id"],
        "workspace_id": 1,
        "name": "w",
        "is_deleted": False,
        "release_labels": ["prod"],
        "user_id": item["user_id"],
        "latest_version_number": 1,
        "external_ids": [pair],
        "folder_id": None,
        "created_at": item["created_at"],
        "updated_at": item["updated_at"],
    }


def test_pages_have_exact_counts_and_neighbours(client: TestClient, many: list[dict[str, Any]]) -> None:
    def page(number: int, size: int) -> dict[str, Any]:
        found: dict[str, Any] = client.get("/workflows", params={"page": number, "per_page": size}).json()
        return found

    def facts(found: dict[str, Any]) -> tuple[Any, ...]:
        keys = ("page", "per_page", "pages", "total", "has_next", "has_prev", "next_num", "prev_num")
        return tuple(found[key] for key in keys)

    assert facts(page(1, 5)) == (1, 5, 3, 12, True, False, 2, None)
    assert facts(page(2, 5)) == (2, 5, 3, 12, True, True, 3, 1)
    assert facts(page(3, 5)) == (3, 5, 3, 12, False, True, None, 2)
    assert facts(page(2, 6)) == (2, 6, 2, 12, False, True, None, 1)
    past = page(9, 5)
    assert (past["items"], facts(past)) == ([], (9, 5, 3, 12, False, True, None, 8))
    assert [item for number in (1, 2, 3) for item in page(number, 5)["items"]] == many
    assert set(past) == {
        "items", "page", "per_page", "pages", "has_next", "has_prev", "total", "next_num", "prev_num",
    }  # fmt: skip


def test_a_workspace_without_workflows_has_an_empty_page(
    client: TestClient, many: list[dict[str, Any]], foreign_key: str
) -> None:
    found = client.get("/workflows", headers={"X-API-KEY": foreign_key}).json()
    assert found == {
        "items": [],
        "page": 1,
        "per_page": 30,
        "pages": 0,
        "has_next": False,
        "has_prev": False,
        "total": 0,
        "next_num": None,
        "prev_num": None,
    }


def test_a_page_that_is_no_number_in_range_is_400(client: TestClient) -> None:
    values = ("0", "-1", "101x", "", "1.5", "1e3", "\uff19", str(10**30), "null", "\x00")
    for name, value in product(("page", "per_page"), values):
        answer = client.get("/workflows", params={name: value})
        assert answer.status_code == 400, (name, value)
        assert answer.json() == {
            "success": False,
            "message": "Invalid pagination parameters",
            "error": "validation_error",
        }


def test_the_bounds_of_a_page(client: TestClient) -> None:
    for query, status in (
        ({"per_page": 100}, 200),
        ({"per_page": 101}, 400),
        ({"page": 1_000_000_000}, 200),
        ({"page": 1_000_000_001}, 400),
    ):
        assert client.get("/workflows", params=query).status_code == status


def test_every_order_there_and_back(client: TestClient, many: list[dict[str, Any]]) -> None:
    for sort, order in product(SORTS, ("asc", "desc")):
        wanted = sorted(many, key=lambda item: (item[sort], item["id"]), reverse=order == "desc")
        assert names(client, sort_by=sort, sort_order=order) == [item["name"] for item in wanted]
    assert names(client) == names(client, sort_by="created_at", sort_order="desc")


def test_every_filter_alone_and_together(
    client: TestClient, store: Store, many: list[dict[str, Any]]
) -> None:
    whole = {item["name"]: item for item in many}
    users = {item["user_id"] for item in many}
    assert len(users) == 2
    ann = principal(store, KEY).user_id + 1
    filters: dict[str, tuple[str, Any]] = {
        "created_by_email": ("ANN@example.com", lambda item: item["user_id"] == ann),
        "created_after": ("2026-01-06T00:00:00Z", lambda item: item["created_at"] >= "2026-01-06"),
        "created_before": (
            "2026-01-07T00:00:00+00:00",
            lambda item: item["created_at"] < "2026-01-07T00:00:01",
        ),
        "updated_after": ("2026-01-21T01:00:00+01:00", lambda item: item["updated_at"] >= "2026-01-21"),
        "updated_before": ("2026-01-24", lambda item: item["updated_at"] < "2026-01-25"),
    }
    for chosen in product((True, False), repeat=len(filters)):
        used = [name for name, on in zip(filters, chosen, strict=True) if on]
        query = {name: filters[name][0] for name in used}
        wanted = [name for name, item in whole.items() if all(filters[f][1](item) for f in used)]
        assert names(client, **query) == wanted, query
    assert names(client, external_source="git", external_id="w3") == ["w09"]
    assert names(client, external_source="git", external_id="w4") == []
    assert names(client, created_by_email="nobody@example.com") == []
    both = {"external_source": "git", "external_id": "w3"}
    assert names(client, **both, created_by_email="bob@example.com") == ["w09"]
    assert names(client, **both, created_by_email="ann@example.com") == []


NO_FILTERS: list[dict[str, str]] = [
    {"external_source": "git"},
    {"external_id": "a"},
    {"created_after": "yesterday"},
    {"updated_before": "2026-13-01"},
    {"sort_by": "user_id"},
    {"sort_order": "up"},
]


def test_filters_that_fit_nothing_are_refused(client: TestClient) -> None:
    for query in NO_FILTERS:
        answer = client.get("/workflows", params=query)
        assert (answer.status_code, answer.json()["error"]) == (422, "validation_error"), query
        assert answer.json()["detail"]


def test_only_writers_of_workflows_change_them(client: TestClient, store: Store) -> None:
    saved(client, "w")
    for scope, status in (("read", 403), ("write:prompt", 403), ("write:workflow", 200)):
        headers = {"X-API-KEY": create_key(store, scopes=[scope])[1]}
        made = client.post("/rest/workflows", json={"name": "w", "nodes": []}, headers=headers)
        assert made.status_code == (201 if status == 200 else status)
        assert client.delete("/workflows/w", headers=headers).status_code == status


def test_the_page_of_the_library_is_the_page_of_the_list(store: Store) -> None:
    page = list_workflows(store, principal(store, KEY), WorkflowQuery(), page=1, per_page=5)
    assert (list(page.items), page.total, page.pages, page.next_num, page.prev_num) == ([], 0, 0, None, None)
