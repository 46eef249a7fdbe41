"""Datasets end to end: files become versions (E22), which are listed (E25), read and deleted."""

import json
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from api.app import create_app
from api.openapi import operations
from storage.engine.schema import sheets, tables
from storage.engine.webhook_schema import events
from storage.settings import Settings
from storage.store import Store
from tests.conftest import KEY
from tests.dataset_calls import (
    V2,
    VERSIONS,
    from_file,
    listed,
    make_group,
    numbers,
    rows,
    run_all,
    saved,
    versions,
)


def test_a_file_becomes_a_version_of_its_group(client: TestClient, store: Store) -> None:
    group = make_group(client)
    made = from_file(client, group, b"question,answer\nWhat?,42\nWhy?\n")
    assert made.status_code == 201
    assert set(made.json()) == {"success", "message", "dataset_id"}
    (draft,) = versions(client, group)
    assert (draft["version_number"], draft["draft_state"]) == (-1, "importing")
    assert run_all(store) == [None]
    (version,) = versions(client, group)
    assert (version["id"], version["version_number"]) == (made.json()["dataset_id"], 1)
    assert (version["column_names"], version["row_count"]) == (["question", "answer"], 2)
    assert version["dataset_group"] == {
        "id": group,
        "name": "Questions",
        "workspace_id": 1,
        "is_deleted": False,
    }
    assert (version["draft_state"], version["is_deleted"], version["filter_params"]) == (None, False, {})
    assert rows(client, version["id"]) == [
        {"question": "What?", "answer": "42"},
        {"question": "Why?", "answer": ""},
    ]


def test_versions_of_other_files_have_other_columns_and_stay_as_they_are(
    client: TestClient, store: Store
) -> None:
    group = make_group(client)
    first = saved(client, store, group, b"a,b\n1,2\n")
    second = saved(client, store, group, b"b,c\n3,4\n5,6\n")
    assert numbers(client, group) == [1, 2]
    assert rows(client, first) == [{"a": "1", "b": "2"}]
    assert rows(client, second) == [{"b": "3", "c": "4"}, {"b": "5", "c": "6"}]


def test_the_rows_of_a_dataset_come_page_by_page(client: TestClient, store: Store) -> None:
    group = make_group(client)
    dataset = saved(client, store, group, b"n\n" + b"".join(b"%d\n" % n for n in range(25)))
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 10}
    while True:
        page = client.get(f"{V2}/datasets/{dataset}/rows", params=query).json()
        seen += [row["values"]["n"] for row in page["data"]]
        query["cursor"] = page["pagination"]["next_cursor"]
        if query["cursor"] is None:
            break
    assert seen == [str(n) for n in range(25)]
    assert page["row_count"] == 25
    assert page["count"] == 5


def test_a_file_that_fails_removes_its_draft_and_tells_of_it(client: TestClient, store: Store) -> None:
    group = make_group(client)
    types = ["dataset_version_created_by_file", "dataset_version_created_by_file_failed"]
    hook = {"url": "https://93.184.215.14/hook", "event_types": types}
    assert client.post(f"{V2}/webhooks", json=hook).status_code == 201
    made = from_file(client, group, b"a,a\n1,2\n")
    assert [type(end).__name__ for end in run_all(store)] == ["Refused"]
    assert numbers(client, group, status="all") == []
    saved(client, store, group)
    with store.catalog.read() as connection:
        failed, created = connection.execute(events.select().order_by(events.c.no)).mappings()
    assert failed["event_type"] == "dataset_version_created_by_file_failed"
    assert failed["details"]["dataset_id"] == made.json()["dataset_id"]
    assert "a" in failed["details"]["error_message"]
    assert created["event_type"] == "dataset_version_created_by_file"
    assert created["details"]["version_number"] == 1
    assert created["details"]["file_name"] == "q.csv"


def test_a_deleted_version_is_listed_as_deleted_and_its_number_is_not_given_again(
    client: TestClient, store: Store
) -> None:
    group = make_group(client)
    first, second = saved(client, store, group), saved(client, store, group)
    assert client.delete(f"{V2}/datasets/{second}").status_code == 200
    assert client.get(f"{V2}/datasets/{second}/rows").status_code == 404
    assert numbers(client, group) == [1]
    assert numbers(client, group, status="deleted") == [2]
    assert numbers(client, group, status="all") == [1, 2]
    saved(client, store, group)
    assert numbers(client, group) == [1, 3]
    assert client.delete(f"{V2}/dataset-groups/{group}").status_code == 200
    assert numbers(client, group) == []
    assert [one["dataset_group"]["is_deleted"] for one in versions(client, group, status="all")] == [True] * 3
    assert client.get(f"{V2}/datasets/{first}").status_code == 404
    assert make_group(client) != group


def test_groups_are_read_listed_renamed_and_keep_their_names_apart(client: TestClient, store: Store) -> None:
    folder = client.post(f"{V2}/folders", json={"name": "Support"}).json()["id"]
    pair = {"source": "git", "external_id": "q.csv"}
    group = make_group(client, folder_id=folder, external_ids=[pair])
    other = make_group(client, "Others")
    assert client.post(f"{V2}/dataset-groups", json={"name": "Questions"}).status_code == 409
    assert client.post(f"{V2}/dataset-groups", json={"name": "x", "external_ids": [pair]}).status_code == 409
    found = client.get(f"{V2}/dataset-groups/{group}").json()["dataset_group"]
    assert (found["folder_id"], found["external_ids"]) == (folder, [pair])
    page = client.get(f"{V2}/dataset-groups", params={"name": "QUES"}).json()
    assert ([one["id"] for one in page["items"]], page["total"]) == ([group], 1)
    saved(client, store, group)
    path = f"{V2}/dataset-groups/{group}"
    assert client.patch(path, json={"name": "Others"}).status_code == 409
    assert client.patch(path, json={"name": "Hard", "folder_id": None}).status_code == 200
    (version,) = versions(client, group)
    assert version["dataset_group"]["name"] == "Hard"
    assert [one["dataset_group_id"] for one in listed(client, name="hard")] == [group]
    entities = client.get(f"{V2}/folders/entities").json()["data"]
    assert [one["id"] for one in entities if one["type"] == "DATASET"] == [group, other]


def test_a_list_is_bounded_filtered_and_sorted(client: TestClient, store: Store) -> None:
    pair = {"source": "git", "external_id": "a"}
    group, other = make_group(client, "a", external_ids=[pair]), make_group(client, "B%")
    ids = [saved(client, store, one) for one in (group, other, group)]
    everything = client.get(f"{V2}/datasets").json()
    assert set(everything) == {"success", "message", "datasets", "page", "per_page", "total", "pages"}
    assert [one["id"] for one in everything["datasets"]] == ids[::-1]
    assert (everything["page"], everything["per_page"], everything["total"], everything["pages"]) == (
        1,
        10,
        3,
        1,
    )
    second = client.get(f"{V2}/datasets", params={"page": 2, "per_page": 2, "sort_by": "id"}).json()
    assert ([one["id"] for one in second["datasets"]], second["pages"]) == ([ids[0]], 2)
    by_name = [one["id"] for one in listed(client, sort_by="name", sort_order="asc")]
    assert by_name == [ids[1], ids[0], ids[2]]
    assert [one["id"] for one in listed(client, name="%")] == [ids[1]]
    assert [one["id"] for one in listed(client, external_source="git", external_id="a")] == [ids[2], ids[0]]
    assert listed(client, external_source="git", external_id="b") == []
    assert listed(client, created_by_email="nobody@example.com") == []
    moment = everything["datasets"][1]["created_at"]
    assert [one["id"] for one in listed(client, created_after=moment)] == ids[:0:-1]
    assert [one["id"] for one in listed(client, created_before=moment)] == ids[1::-1]
    assert [one["id"] for one in listed(client, created_after=moment, created_before=moment)] == [ids[1]]
    assert listed(client, updated_before="2020-01-01") == []
    assert len(listed(client, updated_after="2020-01-01", workspace_id=1)) == 3


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"per_page": 0}, 422),
        ({"per_page": 101}, 422),
        ({"page": 0}, 422),
        ({"external_source": "git"}, 422),
        ({"external_id": "x"}, 422),
        ({"status": "gone"}, 422),
        ({"sort_by": "color"}, 422),
        ({"dataset_group_id": 0}, 422),
        ({"created_after": "yesterday"}, 422),
        ({"workspace_id": 99}, 400),
    ],
)
def test_a_wrong_query_is_refused(client: TestClient, query: dict[str, Any], status: int) -> None:
    answer = client.get(f"{V2}/datasets", params=query)
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize(
    ("verb", "body", "status"),
    [
        ("from-file", {"file_name": "a.csv", "file_content_base64": "YQ=="}, 422),
        ("from-file", {"dataset_group_id": 1, "file_name": "a.tsv", "file_content_base64": "YQ=="}, 422),
        ("from-file", {"dataset_group_id": 1, "file_name": "a.csv", "file_content_base64": ""}, 422),
        ("from-file", {"dataset_group_id": 1, "file_name": "a.csv", "file_content_base64": "Y"}, 400),
        (
            "from-file",
            {"dataset_group_id": 1, "file_name": "a" * 252 + ".csv", "file_content_base64": "YQ=="},
            422,
        ),
        ("from-file", {"dataset_group_id": 9, "file_name": "a.csv", "file_content_base64": "YQ=="}, 404),
        ("create-draft", {"dataset_group_id": 0}, 422),
        *(
            (verb, {"dataset_group_id": 1, "workspace_id": 99, **more}, 400)
            for verb, more in (
                ("from-file", {"file_name": "a.csv", "file_content_base64": "YQ=="}),
                ("from-filter-params", {"filter_group": {}}),
                ("create-draft", {}),
                ("save-draft", {}),
                ("add-rows", {"rows": [{"a": 1}]}),
            )
        ),
        ("create-draft", {"dataset_group_id": 1, "source_dataset_id": 0}, 422),
        ("create-draft", {"dataset_group_id": 9}, 404),
        ("save-draft", {}, 422),
        ("add-rows", {"dataset_group_id": 1, "rows": []}, 422),
        ("add-rows", {"dataset_group_id": 1, "rows": [{"": 1}]}, 422),
        ("from-filter-params", {"dataset_group_id": 1}, 422),
        ("from-filter-params", {"dataset_group_id": 1, "filter_group": {"filters": [{"field": "x"}]}}, 422),
        ("from-filter-params", {"dataset_group_id": 1, "filter_group": {}, "include_fields": ["x"]}, 422),
    ],
)
def test_a_wrong_body_is_refused_and_leaves_nothing(
    client: TestClient, settings: Settings, verb: str, body: dict[str, Any], status: int
) -> None:
    make_group(client)
    answer = client.post(f"{VERSIONS}/{verb}", json=body)
    assert answer.status_code == status, answer.text
    assert versions(client, 1) == []
    spool = settings.root / "data" / "spool"
    assert not spool.exists() or list(spool.iterdir()) == []


def test_datasets_are_deprecated_in_the_document_and_in_every_answer(client: TestClient) -> None:
    found = [
        operation
        for _, path, operation in operations(client.get("/openapi.json").json())
        if path.startswith((f"{V2}/dataset-", f"{V2}/datasets"))
    ]
    assert len(found) > 10
    assert all(operation.get("deprecated") for operation in found)
    for answer in (client.get(f"{V2}/datasets"), client.get(f"{V2}/datasets/9")):
        assert answer.headers["deprecation"].startswith("@")
    assert "deprecation" not in client.get(f"{V2}/tables").headers


def test_what_keeps_the_rows_of_datasets_is_no_table_to_clients(client: TestClient, store: Store) -> None:
    saved(client, store, make_group(client))
    assert client.get(f"{V2}/tables").json()["data"] == []
    entities = client.get(f"{V2}/folders/entities").json()["data"]
    assert [one["type"] for one in entities] == ["DATASET"]
    entries = client.get(f"{V2}/audit").json()["data"]
    assert {entry["kind"] for entry in entries} & {"sheet", "table"} == set()
    with store.catalog.read() as connection:
        table_id, sheet_id = connection.execute(
            tables.join(sheets).select().with_only_columns(tables.c.id, sheets.c.id)
        ).one()
    for path in ("", "/sheets", f"/sheets/{sheet_id}", f"/sheets/{sheet_id}/rows"):
        assert client.get(f"{V2}/tables/{table_id}{path}").status_code == 404, path


def test_json_files_keep_their_types(client: TestClient, store: Store) -> None:
    group = make_group(client)
    made = from_file(client, group, json.dumps([{"a": 1}, {"a": None, "b": [2.5]}]).encode(), "x.JSON")
    assert run_all(store) == [None]
    assert rows(client, made.json()["dataset_id"]) == [{"a": 1, "b": None}, {"a": None, "b": [2.5]}]


def test_a_file_of_one_byte_more_than_the_limit_is_refused(store: Store, settings: Settings) -> None:
    small = replace(settings, max_file_bytes=1000)
    with TestClient(create_app(small), headers={"X-API-KEY": KEY}) as client:
        group = make_group(client)
        content = b"a\n" + b"1" * 998
        refused = from_file(client, group, content + b"1")
        assert (refused.status_code, refused.json()["error"]) == (413, "payload_too_large")
        assert versions(client, group) == []
        assert from_file(client, group, content).status_code == 201
