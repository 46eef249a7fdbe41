"""Datasets end to end: drafts made, filled, saved, lost (E22-E24), and how versions are listed (E25)."""

import base64
import json
import threading
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from api.app import create_app
from api.openapi import operations
from pipelines.registry import WORK
from pipelines.work import run_operation
from storage.engine.schema import events, sheets, tables
from storage.operations import ClaimRefused, claim, list_waiting, settle_ended_run
from storage.settings import Settings
from storage.store import Store
from tests.conftest import KEY

V2 = "/api/public/v2"
VERSIONS = f"{V2}/dataset-versions"


def make_group(client: TestClient, name: str = "Questions", **more: Any) -> int:
    answer = client.post(f"{V2}/dataset-groups", json={"name": name, **more})
    assert answer.status_code == 201, answer.text
    return int(answer.json()["dataset_group"]["id"])


def from_file(client: TestClient, group: int, content: bytes, name: str = "q.csv") -> Any:
    body = {
        "dataset_group_id": group,
        "file_name": name,
        "file_content_base64": base64.b64encode(content).decode(),
    }
    return client.post(f"{VERSIONS}/from-file", json=body)


def call(client: TestClient, verb: str, group: int, **more: Any) -> Any:
    return client.post(f"{VERSIONS}/{verb}", json={"dataset_group_id": group, **more})


def run_all(store: Store) -> list[BaseException | None]:
    """Do all queued work in this process; return how each ended."""
    ends: list[BaseException | None] = []
    for one in list_waiting(store):
        try:
            run_operation(WORK, store, one.no, one.attempt, f"run-{one.no}", lambda _: None)
        except Exception as error:  # noqa: BLE001
            ends.append(error)
        else:
            ends.append(None)
    return ends


def versions(client: TestClient, group: int, **query: Any) -> list[dict[str, Any]]:
    params = {"dataset_group_id": group, "sort_by": "id", "sort_order": "asc", **query}
    answer = client.get(f"{V2}/datasets", params=params)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["datasets"])


def numbers(client: TestClient, group: int, **query: Any) -> list[int]:
    return [one["version_number"] for one in versions(client, group, **query)]


def rows(client: TestClient, dataset: int) -> list[dict[str, Any]]:
    answer = client.get(f"{V2}/datasets/{dataset}/rows", params={"limit": 1000})
    assert answer.status_code == 200, answer.text
    return [row["values"] for row in answer.json()["data"]]


def saved(client: TestClient, store: Store, group: int, content: bytes = b"a,b\n1,2\n") -> int:
    made = from_file(client, group, content)
    assert made.status_code == 201, made.text
    assert run_all(store) == [None]
    return int(made.json()["dataset_id"])


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


def test_an_upload_removed_under_its_draft_removes_the_draft(
    client: TestClient, store: Store, settings: Settings
) -> None:
    group = make_group(client)
    from_file(client, group, b"a\n1\n")
    (upload,) = (settings.root / "data" / "spool").iterdir()
    upload.unlink()
    assert [type(end).__name__ for end in run_all(store)] == ["Refused"]
    assert numbers(client, group, status="all") == []
    assert call(client, "create-draft", group).status_code == 201


def test_an_empty_draft_is_filled_and_saved(client: TestClient, store: Store) -> None:
    group = make_group(client)
    made = call(client, "create-draft", group)
    assert (made.status_code, made.json()["success"]) == (201, True)
    draft = made.json()["draft_dataset_id"]
    added = call(client, "add-rows", group, rows=[{"q": "one", "n": 1}, {"q": "two", "more": {"x": [True]}}])
    assert (added.status_code, added.json()["row_count"]) == (201, 2)
    assert call(client, "add-rows", group, rows=[{"n": 2.5}]).json()["row_count"] == 3
    expected = [
        {"q": "one", "n": 1, "more": None},
        {"q": "two", "n": None, "more": {"x": [True]}},
        {"q": None, "n": 2.5, "more": None},
    ]
    assert rows(client, draft) == expected
    assert numbers(client, group) == [-1]
    answer = call(client, "save-draft", group)
    assert (answer.status_code, answer.json()["draft_dataset_id"]) == (202, draft)
    assert numbers(client, group) == [-1]
    assert run_all(store) == [None]
    (version,) = versions(client, group)
    assert (version["id"], version["version_number"]) == (draft, 1)
    assert (version["column_names"], version["row_count"]) == (["q", "n", "more"], 3)
    assert rows(client, draft) == expected


def test_many_rows_are_added_as_a_segment(client: TestClient, store: Store) -> None:
    group = make_group(client)
    draft = call(client, "create-draft", group).json()["draft_dataset_id"]
    for start in (0, 1000):
        many = [{"n": n, "even": n % 2 == 0} for n in range(start, start + 1000)]
        assert call(client, "add-rows", group, rows=many).status_code == 201
    assert call(client, "add-rows", group, rows=[{"n": 2000}]).status_code == 201
    assert client.get(f"{V2}/datasets/{draft}").json()["dataset"]["row_count"] == 2001
    last = client.get(f"{V2}/datasets/{draft}/rows", params={"limit": 2, "order": "desc"}).json()["data"]
    assert [row["values"] for row in last] == [{"n": 2000, "even": None}, {"n": 1999, "even": False}]


def test_a_draft_of_a_version_starts_with_its_rows_and_leaves_it_alone(
    client: TestClient, store: Store
) -> None:
    group = make_group(client)
    first = saved(client, store, group, b"a,b\n1,2\n")
    saved(client, store, group, b"c\n9\n")
    made = call(client, "create-draft", group, source_dataset_id=first)
    assert made.status_code == 202
    draft = made.json()["draft_dataset_id"]
    assert client.get(f"{V2}/datasets/{draft}").json()["dataset"]["draft_state"] == "copying"
    assert call(client, "add-rows", group, rows=[{"a": "x"}]).status_code == 409
    assert run_all(store) == [None]
    found = client.get(f"{V2}/datasets/{draft}").json()["dataset"]
    assert (found["draft_state"], found["row_count"], found["column_names"]) == ("open", 1, ["a", "b"])
    call(client, "add-rows", group, rows=[{"a": "x", "d": "y"}])
    call(client, "save-draft", group)
    run_all(store)
    assert numbers(client, group) == [1, 2, 3]
    assert rows(client, first) == [{"a": "1", "b": "2"}]
    assert rows(client, draft) == [{"a": "1", "b": "2", "d": None}, {"a": "x", "b": None, "d": "y"}]


@pytest.mark.parametrize("before", ["from-file", "copy", "save"])
def test_a_save_while_work_is_under_way_makes_one_version(
    client: TestClient, store: Store, before: str
) -> None:
    group = make_group(client)
    source = saved(client, store, group)
    if before == "from-file":
        draft = from_file(client, group, b"a\n1\n").json()["dataset_id"]
    else:
        more = {"source_dataset_id": source} if before == "copy" else {}
        draft = call(client, "create-draft", group, **more).json()["draft_dataset_id"]
    for _ in range(3):
        answer = call(client, "save-draft", group)
        assert (answer.status_code, answer.json()["draft_dataset_id"]) == (202, draft)
    assert call(client, "add-rows", group, rows=[{"a": 1}]).status_code == 409
    assert run_all(store) == [None]
    assert [(one["id"], one["version_number"]) for one in versions(client, group)] == [
        (source, 1),
        (draft, 2),
    ]
    assert call(client, "save-draft", group).json()["error"] == "no_draft"


def test_two_creates_at_the_same_moment_make_one_draft(client: TestClient) -> None:
    group = make_group(client)
    answers: list[Any] = []
    gate = threading.Barrier(2)

    def create() -> None:
        gate.wait()
        answers.append(call(client, "create-draft", group))

    threads = [threading.Thread(target=create) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [201, 409]
    (refused,) = [answer.json() for answer in answers if answer.status_code == 409]
    assert refused["error"] == "draft_exists"
    assert numbers(client, group) == [-1]


def test_what_is_refused_while_there_is_a_draft_and_while_there_is_none(
    client: TestClient, store: Store, settings: Settings
) -> None:
    group = make_group(client)
    for verb, more in (("save-draft", {}), ("add-rows", {"rows": [{"a": 1}]})):
        answer = call(client, verb, group, **more)
        assert (answer.status_code, answer.json()["error"]) == (404, "no_draft")
    call(client, "create-draft", group)
    assert from_file(client, group, b"a\n1\n").json()["error"] == "draft_exists"
    assert call(client, "from-filter-params", group, filter_group={}).json()["error"] == "draft_exists"
    assert list((settings.root / "data" / "spool").iterdir()) == []


def test_a_source_of_another_group_or_workspace_is_unknown(
    client: TestClient, store: Store, foreign_key: str
) -> None:
    one, other = make_group(client, "one"), make_group(client, "other")
    source = saved(client, store, one)
    answer = call(client, "create-draft", other, source_dataset_id=source)
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    theirs = {"X-API-KEY": foreign_key}
    for verb in ("create-draft", "save-draft"):
        body = {"dataset_group_id": one}
        assert client.post(f"{VERSIONS}/{verb}", json=body, headers=theirs).json()["error"] == "not_found"
    assert numbers(client, other) == []


def test_a_draft_that_is_deleted_ends_its_work_and_frees_its_place(client: TestClient, store: Store) -> None:
    group = make_group(client)
    draft = from_file(client, group, b"a\n1\n").json()["dataset_id"]
    assert client.delete(f"{V2}/datasets/{draft}").status_code == 200
    assert run_all(store) == []
    assert numbers(client, group, status="all") == []
    assert client.get(f"{V2}/datasets/{draft}").status_code == 404
    saved(client, store, group)
    assert numbers(client, group) == [1]


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
    listed = client.get(f"{V2}/dataset-groups", params={"name": "QUES"}).json()
    assert ([one["id"] for one in listed["items"]], listed["total"]) == ([group], 1)
    saved(client, store, group)
    path = f"{V2}/dataset-groups/{group}"
    assert client.patch(path, json={"name": "Others"}).status_code == 409
    assert client.patch(path, json={"name": "Hard", "folder_id": None}).status_code == 200
    (version,) = versions(client, group)
    assert version["dataset_group"]["name"] == "Hard"
    assert [one["dataset_group_id"] for one in _list(client, name="hard")] == [group]
    entities = client.get(f"{V2}/folders/entities").json()["data"]
    assert [one["id"] for one in entities if one["type"] == "DATASET"] == [group, other]


def _list(client: TestClient, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(f"{V2}/datasets", params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["datasets"])


def log(client: TestClient, **more: Any) -> int:
    example = client.get("/openapi.json").json()["components"]["schemas"]["LogRequest"]["examples"][0]
    fields = {key: value for key, value in example.items() if not key.startswith("prompt_")}
    answer = client.post("/log-request", json={**fields, **more})
    assert answer.status_code == 201, answer.text
    return int(answer.json()["id"])


def publish(client: TestClient, name: str) -> dict[str, Any]:
    blueprint = {"type": "completion", "content": [{"type": "text", "text": "Say {x}"}]}
    body = {
        "prompt_template": {"prompt_name": name},
        "prompt_version": {"prompt_template": blueprint},
        "release_labels": ["prod"],
    }
    return dict(client.post("/rest/prompt-templates", json=body).json())


def test_a_dynamic_dataset_holds_what_its_filter_matches(client: TestClient, store: Store) -> None:
    log(client, provider="openai")
    wanted = log(client, provider="anthropic", prompt_input_variables={"x": "y"})
    group = make_group(client)
    params = {
        "filter_group": {"filters": [{"field": "provider_type", "operator": "is", "value": "anthropic"}]},
        "variables_to_parse": ["x"],
    }
    made = call(client, "from-filter-params", group, **params)
    assert made.status_code == 201, made.text
    assert run_all(store) == [None]
    (version,) = versions(client, group)
    assert (version["version_number"], version["filter_params"]) == (1, params)
    assert version["column_names"] == ["request_id", "input", "output", "x"]
    assert [(row["request_id"], row["x"]) for row in rows(client, version["id"])] == [(wanted, "y")]


def test_a_dynamic_dataset_by_the_ids_of_a_prompt_and_times(client: TestClient, store: Store) -> None:
    prompt, other = publish(client, "greet"), publish(client, "part")
    wanted = log(client, prompt_name="greet", prompt_version_number=1)
    log(client, prompt_name="part", prompt_version_number=1)
    group = make_group(client)
    params = {"prompt_version_id": prompt["prompt_version_id"], "start_time": "2020-01-01T00:00:00Z"}
    call(client, "from-filter-params", group, **params)
    assert run_all(store) == [None]
    (version,) = versions(client, group)
    assert [row["request_id"] for row in rows(client, version["id"])] == [wanted]
    assert version["filter_params"] == params
    assert [one["id"] for one in _list(client, prompt_version_id=prompt["prompt_version_id"])] == [
        version["id"]
    ]
    assert _list(client, prompt_version_id=other["prompt_version_id"]) == []
    assert call(client, "from-filter-params", group, prompt_id=99).status_code == 404


def test_a_filter_that_matches_nothing_leaves_no_draft(client: TestClient, store: Store) -> None:
    group = make_group(client)
    call(client, "from-filter-params", group, filter_group={})
    assert [type(end).__name__ for end in run_all(store)] == ["Refused"]
    assert numbers(client, group, status="all") == []


def test_datasets_are_found_by_the_prompts_that_their_filters_name(client: TestClient, store: Store) -> None:
    log(client)
    prompt, other = publish(client, "greet"), publish(client, "part")
    group, plain = make_group(client), make_group(client, "plain")
    saved(client, store, plain)
    filters = [
        {"field": "prompt", "operator": "is", "value": "greet"},
        {"field": "prompt_version_number", "operator": "eq", "value": 1},
        {"field": "prompt_label", "operator": "is", "value": "prod"},
        {"field": "prompt_id", "operator": "neq", "value": other["id"]},
        {"field": "prompt_id", "operator": "is_null"},
    ]
    call(client, "from-filter-params", group, filter_group={"logic": "OR", "filters": filters})
    assert run_all(store) == [None]
    (label,) = client.get("/prompt-templates/greet/labels").json()["release_labels"]
    found = {
        "prompt_id": prompt["id"],
        "prompt_version_id": prompt["prompt_version_id"],
        "prompt_label_id": label["release_label_id"],
    }
    for field, value in found.items():
        assert [one["dataset_group_id"] for one in _list(client, **{field: value})] == [group], field
        assert _list(client, **{field: value + 1}) == []
    assert _list(client, **found, dataset_group_id=plain) == []


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
    by_name = [one["id"] for one in _list(client, sort_by="name", sort_order="asc")]
    assert by_name == [ids[1], ids[0], ids[2]]
    assert [one["id"] for one in _list(client, name="%")] == [ids[1]]
    assert [one["id"] for one in _list(client, external_source="git", external_id="a")] == [ids[2], ids[0]]
    assert _list(client, external_source="git", external_id="b") == []
    assert _list(client, created_by_email="nobody@example.com") == []
    moment = everything["datasets"][1]["created_at"]
    assert [one["id"] for one in _list(client, created_after=moment)] == ids[:0:-1]
    assert [one["id"] for one in _list(client, created_before=moment)] == ids[1::-1]
    assert [one["id"] for one in _list(client, created_after=moment, created_before=moment)] == [ids[1]]
    assert _list(client, updated_before="2020-01-01") == []
    assert len(_list(client, updated_after="2020-01-01", workspace_id=1)) == 3


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


def lose_run(store: Store) -> None:
    """Let the run of the queued operation claim it and die, as Dagster tells of it."""
    (queued,) = list_waiting(store)
    claim(store, queued.no, queued.attempt, "run-that-dies")
    settle_ended_run(store, queued.no, queued.attempt, "run-that-dies", cancelled=False)


def test_a_draft_whose_run_dies_is_gone_or_stays_as_its_work_says(client: TestClient, store: Store) -> None:
    group = make_group(client)
    source = saved(client, store, group)
    for start in (
        lambda: from_file(client, group, b"a\n1\n"),
        lambda: call(client, "create-draft", group, source_dataset_id=source),
    ):
        assert start().status_code in {201, 202}
        lose_run(store)
        assert numbers(client, group) == [1]
    call(client, "create-draft", group)
    call(client, "add-rows", group, rows=[{"a": "kept"}])
    call(client, "save-draft", group)
    lose_run(store)
    (draft,) = [one for one in versions(client, group) if one["version_number"] == -1]
    assert draft["draft_state"] == "open"
    assert rows(client, draft["id"]) == [{"a": "kept"}]
    call(client, "save-draft", group)
    assert run_all(store) == [None]
    assert numbers(client, group) == [1, 2]


def test_a_run_that_outlives_its_draft_publishes_nothing(client: TestClient, store: Store) -> None:
    group = make_group(client)
    draft = from_file(client, group, b"a\n1\n").json()["dataset_id"]
    (queued,) = list_waiting(store)
    work = WORK[queued.kind]

    def delete_then_work(*arguments: Any) -> Any:
        assert client.delete(f"{V2}/datasets/{draft}").status_code == 200
        assert call(client, "create-draft", group).status_code == 201
        return work(*arguments)

    with pytest.raises(ClaimRefused):
        run_operation({queued.kind: delete_then_work}, store, queued.no, 1, "run", lambda _: None)
    assert [one["draft_state"] for one in versions(client, group)] == ["open"]
    assert versions(client, group)[0]["row_count"] == 0


def test_a_file_of_one_byte_more_than_the_limit_is_refused(store: Store, settings: Settings) -> None:
    small = replace(settings, max_file_bytes=1000)
    with TestClient(create_app(small), headers={"X-API-KEY": KEY}) as client:
        group = make_group(client)
        content = b"a\n" + b"1" * 998
        refused = from_file(client, group, content + b"1")
        assert (refused.status_code, refused.json()["error"]) == (413, "payload_too_large")
        assert versions(client, group) == []
        assert from_file(client, group, content).status_code == 201
