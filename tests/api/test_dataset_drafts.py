"""Drafts of datasets: made, filled, saved, lost, deleted while work on them is under way (E22-E24)."""

import threading
from typing import Any

import pytest
from starlette.testclient import TestClient

from pipelines.registry import WORK
from pipelines.work import run_operation
from storage.operations import ClaimRefused, list_waiting
from storage.settings import Settings
from storage.store import Store
from tests.dataset_calls import (
    V2,
    VERSIONS,
    call,
    from_file,
    lose_run,
    make_group,
    numbers,
    rows,
    run_all,
    saved,
    versions,
)


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
