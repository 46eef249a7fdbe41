"""Reports: columns over a dataset version, run by the sheets' engine (E26), refreshed, deleted."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from storage.engine.webhook_schema import events
from storage.store import Store
from tests.dataset_calls import V2, call, from_file, log, make_group, run_all, saved

CSV = b"question,answer\nWhat is 6 times 7?,42\nAnd 2 times 2?,5\nAnd 1?,1\n"
LENGTH = {"title": "length", "type": "code", "config": {"code": "return len(data['answer'])"}}
RIGHT = {
    "title": "right",
    "type": "comparison",
    "config": {"sources": ["answer"], "target": "42", "comparison_type": {"type": "STRING"}},
}


def make_report(client: TestClient, group: int, *columns: Any) -> int:
    body = {"dataset_group_id": group, "name": "Answers", "columns": list(columns) or [RIGHT]}
    answer = client.post("/reports", json=body)
    assert answer.status_code == 201, answer.text
    return int(answer.json()["report"]["id"])


def run(client: TestClient, report: int, **more: Any) -> Any:
    return client.post(f"/reports/{report}/run", json={"name": "May", **more})


def read(client: TestClient, report: int) -> dict[str, Any]:
    answer = client.get(f"/reports/{report}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["report"])


def column(client: TestClient, report: int, title: str, field: str = "value") -> list[Any]:
    answer = client.get(f"/reports/{report}/rows")
    assert answer.status_code == 200, answer.text
    return [row["cells"][title][field] for row in answer.json()["data"]]


def test_a_run_computes_the_columns_over_the_latest_version(client: TestClient, store: Store) -> None:
    group = make_group(client)
    saved(client, store, group, b"answer\nold\n")
    dataset = saved(client, store, group, CSV)
    pipeline = make_report(client, group, LENGTH, RIGHT)
    hook = {"url": "https://93.184.215.14/hook", "event_types": ["report_finished"]}
    client.post(f"{V2}/webhooks", json=hook)
    started = run(client, pipeline)
    assert started.status_code == 201
    assert set(started.json()) == {"success", "report_id"}
    report = started.json()["report_id"]
    waiting = read(client, report)
    assert (waiting["status"], waiting["status_counts"]) == ("queued", {"queued": 6})
    assert (waiting["parent_id"], waiting["dataset_id"], waiting["row_count"]) == (pipeline, dataset, 3)
    assert column(client, report, "right", "status") == ["queued"] * 3
    assert client.get(f"/reports/{report}/score").json()["score"] is None
    assert run_all(store) == [None]
    done = read(client, report)
    assert (done["status"], done["status_counts"]) == ("completed", {"completed": 6})
    assert column(client, report, "question")[0] == "What is 6 times 7?"
    assert column(client, report, "length") == [2, 1, 1]
    assert column(client, report, "right") == [True, False, False]
    score = client.get(f"/reports/{report}/score").json()
    assert score["score"] == pytest.approx(100 / 3, abs=0.1) or score["score"] == pytest.approx(
        1 / 3, abs=0.01
    )
    assert [one["title"] for one in score["columns"]] == ["right"]
    with store.catalog.read() as connection:
        (event,) = connection.execute(events.select()).mappings()
    assert event["event_type"] == "report_finished"
    assert (event["details"]["report_id"], event["details"]["status"]) == (report, "completed")


def test_a_run_over_another_version_leaves_both_datasets_alone(client: TestClient, store: Store) -> None:
    group = make_group(client)
    first = saved(client, store, group, CSV)
    saved(client, store, group, b"answer\n42\n")
    pipeline = make_report(client, group)
    report = run(client, pipeline, dataset_id=first).json()["report_id"]
    run_all(store)
    assert column(client, report, "right") == [True, False, False]
    listed = client.get(f"{V2}/datasets", params={"report_id": pipeline}).json()["datasets"]
    assert [one["version_number"] for one in listed] == [2, 1]
    assert client.delete(f"{V2}/dataset-groups/{group}").status_code == 200
    assert column(client, report, "right") == [True, False, False]
    listed = client.get(f"{V2}/datasets", params={"report_id": pipeline, "status": "all"}).json()["datasets"]
    assert [one["version_number"] for one in listed] == [1]
    listed = client.get(f"{V2}/datasets", params={"report_id": report, "status": "all"}).json()["datasets"]
    assert [one["id"] for one in listed] == [first]


def test_a_pipeline_tells_the_dataset_that_its_next_run_takes(client: TestClient, store: Store) -> None:
    group = make_group(client)
    pipeline = make_report(client, group)
    assert read(client, pipeline)["dataset_id"] is None
    assert run(client, pipeline).status_code == 409
    for _ in range(2):
        newest = saved(client, store, group, CSV)
        assert read(client, pipeline)["dataset_id"] == newest
        report = run(client, pipeline).json()["report_id"]
        assert read(client, report)["dataset_id"] == newest
        run_all(store)
        listed = client.get("/reports", params={"dataset_group_id": group}).json()["items"]
        assert {one["id"]: one["dataset_id"] for one in listed}[pipeline] == newest
    call(client, "create-draft", group)
    assert client.delete(f"{V2}/datasets/{newest}").status_code == 200
    older = read(client, pipeline)["dataset_id"]
    assert older not in {None, newest}
    assert read(client, run(client, pipeline).json()["report_id"])["dataset_id"] == older


def test_rows_added_by_hand_are_computed_too(client: TestClient, store: Store) -> None:
    group = make_group(client)
    call(client, "create-draft", group)
    call(client, "add-rows", group, rows=[{"answer": "42"}, {"answer": 42}, {"other": None}])
    call(client, "save-draft", group)
    run_all(store)
    report = run(client, make_report(client, group)).json()["report_id"]
    run_all(store)
    assert column(client, report, "answer") == ["42", 42, None]
    assert column(client, report, "right", "status") == ["completed"] * 3


def test_a_model_is_not_asked_again_by_the_next_run(client: TestClient, store: Store) -> None:
    group = make_group(client)
    saved(client, store, group, CSV)
    config = {"engine": {"provider": "stub", "model": "echo"}, "prompt": "Say {answer}"}
    pipeline = make_report(client, group, {"title": "said", "type": "llm", "config": config})
    answers = []
    for _ in range(2):
        report = run(client, pipeline).json()["report_id"]
        assert run_all(store) == [None]
        answers.append((column(client, report, "said"), column(client, report, "said", "cached")))
    (first, computed), (second, again) = answers
    assert first == second
    assert None not in first, column(client, report, "said", "error_message")
    assert (computed, again) == ([False] * 3, [True] * 3)


def test_a_dynamic_dataset_is_read_anew_by_a_refreshed_run(client: TestClient, store: Store) -> None:
    log(client, provider="openai")
    group = make_group(client)
    call(client, "from-filter-params", group, filter_group={}, include_fields=["provider"])
    run_all(store)
    config = {"sources": ["provider"], "target": "anthropic"}
    pipeline = make_report(client, group, {"title": "theirs", "type": "comparison", "config": config})
    log(client, provider="anthropic")
    still = run(client, pipeline).json()["report_id"]
    fresh = run(client, pipeline, refresh_dataset=True).json()["report_id"]
    assert read(client, fresh)["status"] == "queued"
    assert run_all(store) == [None, None]
    assert column(client, still, "theirs") == [False]
    assert column(client, fresh, "theirs") == [True, False]
    assert read(client, fresh)["status"] == "completed"
    assert client.get(f"{V2}/datasets", params={"dataset_group_id": group}).json()["total"] == 1


def test_a_refreshed_run_that_dies_between_reading_and_computing_goes_on(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(client, provider="openai")
    group = make_group(client)
    call(client, "from-filter-params", group, filter_group={}, include_fields=["provider"])
    run_all(store)
    config = {"sources": ["provider"], "target": "openai"}
    pipeline = make_report(client, group, {"title": "ours", "type": "comparison", "config": config})
    report = run(client, pipeline, refresh_dataset=True).json()["report_id"]

    def die(*_: Any) -> Any:
        raise OSError("killed")

    with monkeypatch.context() as broken:
        broken.setattr("pipelines.reports.run_recalculation", die)
        assert [type(end) for end in run_all(store)] == [OSError]
    assert (read(client, report)["status"], read(client, report)["row_count"]) == ("queued", 1)
    assert run_all(store) == [None]
    assert column(client, report, "ours") == [True]


def test_a_refresh_that_finds_nothing_fails_the_run(client: TestClient, store: Store) -> None:
    only = log(client, provider="openai")
    group = make_group(client)
    call(client, "from-filter-params", group, filter_group={}, include_fields=["provider"])
    run_all(store)
    config = {"sources": ["provider"], "target": "openai"}
    pipeline = make_report(client, group, {"title": "ours", "type": "comparison", "config": config})
    client.delete(f"{V2}/requests/{only}")
    report = run(client, pipeline, refresh_dataset=True).json()["report_id"]
    assert [type(end).__name__ for end in run_all(store)] == ["Refused"]
    found = read(client, report)
    assert (found["status"], found["error_message"]) == ("failed", "No requests matched")


def test_a_run_over_no_rows_is_finished_at_once(client: TestClient, store: Store) -> None:
    group = make_group(client)
    saved(client, store, group, b"answer\n")
    report = run(client, make_report(client, group)).json()["report_id"]
    assert (read(client, report)["status"], read(client, report)["row_count"]) == ("completed", 0)


def test_what_cannot_be_run_is_refused(client: TestClient, store: Store) -> None:
    group = make_group(client)
    pipeline = make_report(client, group)
    assert run(client, pipeline).status_code == 409
    dataset = saved(client, store, group, CSV)
    report = run(client, pipeline).json()["report_id"]
    again = run(client, report)
    assert (again.status_code, again.json()["error"]) == (400, "validation_error")
    assert run(client, pipeline, refresh_dataset=True, dataset_id=dataset).status_code == 422
    draft = call(client, "create-draft", group).json()["draft_dataset_id"]
    refused = run(client, pipeline, dataset_id=draft)
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    assert run(client, pipeline, dataset_id=99).status_code == 404
    assert run(client, pipeline, name="").status_code == 422
    assert run(client, pipeline, name="x" * 256).status_code == 422
    assert client.post(f"/reports/{pipeline}/run", json={}).status_code == 422
    assert client.get(f"/reports/{pipeline}/rows").status_code == 409
    run_all(store)
    other = make_group(client, "other")
    elsewhere = saved(client, store, other, b"x\n1\n")
    missing = run(client, pipeline, dataset_id=elsewhere)
    assert (missing.status_code, missing.json()["error"]) == (400, "invalid_config")
    assert len(client.get("/reports", params={"parent_id": pipeline}).json()["items"]) == 1


@pytest.mark.parametrize(
    ("changes", "status", "error"),
    [
        ({"columns": []}, 422, "validation_error"),
        ({"columns": [{**RIGHT, "type": "magic"}]}, 422, "validation_error"),
        ({"columns": [{**RIGHT, "config": {"sources": ["nothing"], "target": 1}}]}, 400, "invalid_config"),
        ({"columns": [{**RIGHT, "config": {"source": 1}}]}, 400, "invalid_config"),
        ({"columns": [{**LENGTH, "config": {"code": "return ("}}]}, 400, "invalid_config"),
        ({"columns": [RIGHT, RIGHT]}, 409, "conflict"),
        ({"columns": [{**RIGHT, "title": "answer"}]}, 409, "conflict"),
        ({"dataset_group_id": 99}, 404, "not_found"),
        ({"name": ""}, 422, "validation_error"),
    ],
)
def test_a_wrong_report_is_refused(
    client: TestClient, store: Store, changes: dict[str, Any], status: int, error: str
) -> None:
    group = make_group(client)
    saved(client, store, group, CSV)
    body = {"dataset_group_id": group, "name": "x", "columns": [RIGHT], **changes}
    answer = client.post("/reports", json=body)
    assert (answer.status_code, answer.json()["error"]) == (status, error), answer.text
    assert client.get("/reports").json()["total"] == 0


def test_a_run_is_cancelled_and_keeps_what_it_has(client: TestClient, store: Store) -> None:
    group = make_group(client)
    saved(client, store, group, CSV)
    pipeline = make_report(client, group)
    hook = {"url": "https://93.184.215.14/hook", "event_types": ["report_finished"]}
    client.post(f"{V2}/webhooks", json=hook)
    assert client.post(f"/reports/{pipeline}/cancel").status_code == 409
    report, other = (run(client, pipeline).json()["report_id"] for _ in range(2))
    assert client.post(f"/reports/{report}/cancel").status_code == 200
    found = read(client, report)
    assert (found["status"], found["status_counts"]) == ("cancelled", {"stale": 3})
    assert column(client, report, "answer") == ["42", "5", "1"]
    again = client.post(f"/reports/{report}/cancel")
    assert (again.status_code, again.json()["error"]) == (409, "conflict")
    assert read(client, other)["status"] == "queued"
    # a pipeline stands for its runs that are under way
    assert client.post(f"/reports/{pipeline}/cancel").status_code == 200
    assert read(client, other)["status"] == "cancelled"
    with store.catalog.read() as connection:
        told = [row.details["status"] for row in connection.execute(events.select())]
    assert told == ["cancelled", "cancelled"]
    assert run_all(store) == []
    assert client.post("/reports/99999/cancel").status_code == 404


def test_a_pipeline_is_deleted_with_its_runs_and_their_work(client: TestClient, store: Store) -> None:
    group = make_group(client)
    saved(client, store, group, CSV)
    pipeline = make_report(client, group)
    report = run(client, pipeline).json()["report_id"]
    assert [one["id"] for one in client.get("/reports").json()["items"]] == [report, pipeline]
    assert client.delete(f"/reports/{pipeline}").status_code == 200
    for one in (pipeline, report):
        assert client.get(f"/reports/{one}").status_code == 404
    assert run_all(store) == []
    assert from_file(client, group, CSV).status_code == 201
