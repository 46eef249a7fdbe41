"""Request history becomes a sheet: E8 with the source request_logs, worked as a run works it."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from pipelines.imports import Refused
from pipelines.registry import WORK
from pipelines.work import run_operation
from storage.operations import list_waiting
from storage.store import Store

TABLES = "/api/public/v2/tables"


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


def exchange(n: int, **fields: Any) -> dict[str, Any]:
    asked = [
        {"role": "system", "content": text("Be brief.")},
        {"role": "user", "content": text(f"Question {n}?")},
    ]
    answer = [{"role": "assistant", "content": text(f"Answer {n}.")}]
    return {
        "provider": "openai",
        "model": "gpt-4o",
        "input": {"type": "chat", "messages": asked},
        "output": {"type": "chat", "messages": answer},
        "request_start_time": f"2026-01-0{n}T00:00:00Z",
        "request_end_time": f"2026-01-0{n}T00:00:01.5Z",
        "prompt_input_variables": {"n": n, "input": "x"},
        "metadata": {"user": f"u{n}"},
        "score": 10 * n,
    } | fields


CALL = [
    {
        "role": "assistant",
        "content": [],
        "tool_calls": [
            {"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        ],
    }
]


@pytest.fixture
def ids(client: TestClient) -> list[int]:
    """Ids of three logged requests, oldest first; the last answer is a tool call."""
    bodies = [exchange(1), exchange(2), exchange(3, output={"type": "chat", "messages": CALL})]
    answers = [client.post("/log-request", json=body) for body in bodies]
    assert [answer.status_code for answer in answers] == [201] * 3, answers[2].text
    return [answer.json()["id"] for answer in answers]


@pytest.fixture
def table_id(client: TestClient) -> str:
    return client.post(TABLES, json={}).json()["table"]["id"]


def history(client: TestClient, store: Store, table_id: str, **source: Any) -> dict[str, Any]:
    """Ask for an import, work it as a run does, and return its poll with the rows."""
    body = {"source": {"type": "request_logs"} | source}
    asked = client.post(f"{TABLES}/{table_id}/sheets", json=body)
    assert asked.status_code == 202, asked.text
    (waiting,) = list_waiting(store)
    run_operation(WORK, store, waiting.no, 1, "run-1", lambda _: None)
    made = asked.json()
    poll = client.get(f"{TABLES}/{table_id}/sheets/operations/{made['operation_id']}").json()["operation"]
    page = client.get(f"{TABLES}/{table_id}/sheets/{made['sheet']['id']}/rows").json()
    titles = {column["id"]: column["title"] for column in page["columns"]}
    rows = [{titles[one]: cell for one, cell in row["cells"].items()} for row in page["data"]]
    return {"poll": poll, "sheet": made["sheet"], "rows": rows, "titles": list(titles.values())}


def values(found: dict[str, Any], title: str) -> list[Any]:
    return [row[title]["value"] for row in found["rows"]]


def test_each_request_is_a_row_with_what_was_asked_answered_and_named(
    client: TestClient, store: Store, table_id: str, ids: list[int]
) -> None:
    found = history(
        client,
        store,
        table_id,
        variables_to_parse=["n", "input", "none"],
        include_fields=["model", "latency_ms", "metadata.user", "score", "score.other", "request_start_time"],
    )
    assert found["sheet"]["title"] == "Request Logs"
    assert (found["poll"]["status"], found["poll"]["source"]) == ("succeeded", "request_logs")
    assert (found["poll"]["rows_added"], found["poll"]["message"]) == (3, "3 requests imported")
    assert found["titles"] == [
        "request_id", "input", "output", "n", "input 2", "none",
        "model", "latency_ms", "metadata.user", "score", "score.other", "request_start_time",
    ]  # fmt: skip
    assert values(found, "request_id") == ids[::-1]
    assert values(found, "input")[2] == exchange(1)["input"]["messages"]
    assert found["rows"][2]["input"]["display_value"] == "[system]: Be brief.\n\n[user]: Question 1?"
    assert values(found, "output")[1:] == ["Answer 2.", "Answer 1."]
    assert values(found, "output")[0][0]["tool_calls"] == CALL[0]["tool_calls"]
    assert values(found, "n") == [3, 2, 1]
    assert values(found, "input 2") == ["x"] * 3
    assert values(found, "none") == [None] * 3
    assert values(found, "latency_ms") == [1500.0] * 3
    assert values(found, "metadata.user") == ["u3", "u2", "u1"]
    assert values(found, "score") == [30, 20, 10]
    assert values(found, "score.other") == [None] * 3
    assert values(found, "request_start_time")[2] == "2026-01-01T00:00:00Z"


def test_ids_come_in_the_order_given_once_and_unknown_ones_are_counted(
    client: TestClient, store: Store, table_id: str, ids: list[int]
) -> None:
    wanted = [ids[2], ids[0], ids[2], 999_999]
    found = history(client, store, table_id, request_log_ids=wanted)
    assert values(found, "request_id") == [ids[2], ids[0]]
    assert found["poll"]["message"].startswith("2 requests imported; 1 of the ids")


@pytest.mark.parametrize(
    ("source", "days"),
    [
        ({"start_time": "2026-01-02"}, [3, 2]),
        ({"end_time": "2026-01-02"}, [2, 1]),
        ({"end_time": "2026-01-01T23:59:59Z"}, [1]),
        ({"start_time": "2026-01-02T00:00:00+00:00", "end_time": 1_767_312_000}, [2]),
        ({"limit": 1}, [3]),
    ],
)
def test_times_are_inclusive_and_the_newest_come_first(
    client: TestClient, store: Store, table_id: str, ids: list[int], source: dict[str, Any], days: list[int]
) -> None:
    found = history(client, store, table_id, **source)
    assert values(found, "request_id") == [ids[day - 1] for day in days]


def test_a_prompt_a_version_or_what_a_label_names_now(
    client: TestClient, store: Store, table_id: str, ids: list[int]
) -> None:
    blueprint = {"type": "completion", "content": text("Say {n}")}
    made = [
        client.post(
            "/rest/prompt-templates",
            json={
                "prompt_template": {"prompt_name": "p"},
                "prompt_version": {"prompt_template": blueprint},
                "release_labels": ["prod"],
            },
        ).json()
        for _ in range(2)
    ]
    logged = [
        client.post("/log-request", json=exchange(n, prompt_id=made[0]["id"], prompt_version_number=n)).json()
        for n in (1, 2)
    ]
    label = client.get("/prompt-templates/p/labels").json()["release_labels"][0]["release_label_id"]
    first, second = (one["id"] for one in logged)
    for source, wanted in [
        ({"prompt_id": made[0]["id"]}, [second, first]),
        ({"prompt_version_id": made[0]["prompt_version_id"]}, [first]),
        ({"prompt_label_id": label, "include_fields": ["prompt_label"]}, [second]),
        ({"request_log_ids": [*ids, first], "prompt_id": made[0]["id"]}, [first]),
    ]:
        found = history(client, store, table_id, **source)
        assert values(found, "request_id") == wanted
        if "include_fields" in source:
            assert values(found, "prompt_label") == ["prod"]
    for source in ({"prompt_id": 99}, {"prompt_version_id": 99}, {"prompt_label_id": 99}):
        body = {"source": {"type": "request_logs"} | source}
        assert client.post(f"{TABLES}/{table_id}/sheets", json=body).status_code == 404
    again = {"source": {"type": "request_logs", "prompt_id": made[0]["id"]}, "operation_id": "again"}
    started = client.post(f"{TABLES}/{table_id}/sheets", json=again)
    assert client.delete("/prompt-templates/p").status_code == 200
    repeated = client.post(f"{TABLES}/{table_id}/sheets", json=again)
    assert (repeated.status_code, repeated.json()) == (202, started.json())
    assert client.post(f"{TABLES}/{table_id}/sheets", json=again | {"operation_id": "new"}).status_code == 404


def test_no_match_fails_and_leaves_an_empty_sheet(
    client: TestClient, store: Store, table_id: str, ids: list[int]
) -> None:
    body = {"source": {"type": "request_logs", "start_time": "2027-01-01"}, "operation_id": "none"}
    made = client.post(f"{TABLES}/{table_id}/sheets", json=body).json()
    (waiting,) = list_waiting(store)
    with pytest.raises(Refused):
        run_operation(WORK, store, waiting.no, 1, "run-1", lambda _: None)
    poll = client.get(f"{TABLES}/{table_id}/sheets/operations/none").json()["operation"]
    assert (poll["status"], poll["error_message"]) == ("failed", "No requests matched")
    assert client.get(f"{TABLES}/{table_id}/sheets/{made['sheet']['id']}").json()["sheet"]["row_count"] == 0
    again = client.post(f"{TABLES}/{table_id}/sheets", json=body)
    assert (again.status_code, again.json()) == (202, made)
    assert list_waiting(store) == []


def is_(field: str, value: Any) -> dict[str, Any]:
    return {"filters": [{"field": field, "operator": "is", "value": value}]}


@pytest.mark.parametrize(
    ("source", "days"),
    [
        ({"filter_group": {}}, [3, 2, 1]),
        ({"filter_group": {"filters": [{"value": "u2", "nested_key": "user"}]}}, [2]),
        ({"filter_group": is_("request_start_time", "2026-01-03"), "end_time": "2026-01-02"}, []),
        ({"filter_group": is_("status", "SUCCESS"), "start_time": "2026-01-02"}, [3, 2]),
        ({"q": "QUESTION answ"}, [2, 1]),
        ({"q": "question", "sort_by": "request_start_time", "sort_order": "asc"}, [1, 2, 3]),
        ({"q": "question", "sort_by": "latency_ms", "sort_order": "asc", "limit": 2}, [3, 2]),
    ],
)
def test_filters_words_and_orders_are_those_of_the_search(
    client: TestClient, store: Store, table_id: str, ids: list[int], source: dict[str, Any], days: list[int]
) -> None:
    if not days:
        with pytest.raises(Refused):
            history(client, store, table_id, **source)
        return
    found = history(client, store, table_id, **source)
    assert values(found, "request_id") == [ids[day - 1] for day in days]


def test_ids_keep_their_order_unless_another_is_asked_for(
    client: TestClient, store: Store, table_id: str, ids: list[int]
) -> None:
    wanted = [ids[1], ids[2], ids[0]]
    some = {"filters": [{"field": "pl_id", "operator": "neq", "value": str(ids[2])}]}
    assert values(
        history(client, store, table_id, request_log_ids=wanted, filter_group=some), "request_id"
    ) == [
        ids[1],
        ids[0],
    ]
    asked = {"request_log_ids": wanted, "sort_by": "request_start_time", "sort_order": "desc"}
    assert values(history(client, store, table_id, **asked), "request_id") == ids[::-1]


def into(client: TestClient, url: str, **body: Any) -> Any:
    return client.post(f"{url}/imports/request-logs", json=body)


@pytest.fixture
def sheet_url(client: TestClient, table_id: str) -> str:
    (sheet_id,) = client.get(f"{TABLES}/{table_id}").json()["table"]["sheet_row_counts"]
    return f"{TABLES}/{table_id}/sheets/{sheet_id}"


def work(store: Store) -> None:
    (waiting,) = list_waiting(store)
    run_operation(WORK, store, waiting.no, 1, "run-1", lambda _: None)


def test_requests_are_added_to_a_sheet_that_is_there(
    client: TestClient, store: Store, sheet_url: str, ids: list[int]
) -> None:
    asked = into(client, sheet_url, request_log_ids=[ids[0], 999_999], include_fields=["model"])
    assert asked.status_code == 202, asked.text
    made = asked.json()
    assert made["status_url"].endswith(f"/sheets/operations/{made['operation_id']}")
    assert (made["operation"]["status"], made["operation"]["source"]) == ("queued", "request_logs")
    assert into(client, sheet_url, filter_group={}).json()["error"] == "import_in_progress"
    work(store)
    poll = client.get(made["status_url"]).json()["operation"]
    assert (poll["status"], poll["rows_added"], poll["row_count"]) == ("succeeded", 1, 1)
    assert "1 of the ids were skipped" in poll["message"]
    group = {"filters": [{"field": "engine", "operator": "is", "value": "gpt-4o"}]}
    more = {"filter_group": group, "sort_by": "request_start_time", "sort_order": "asc", "limit": 2}
    again = into(client, sheet_url, **more, variables_to_parse=["n"], metadata_cost_breakdown_key="user")
    work(store)
    assert client.get(again.json()["status_url"]).json()["operation"]["row_count"] == 3
    page = client.get(f"{sheet_url}/rows").json()
    assert [column["title"] for column in page["columns"]] == ["request_id", "input", "output", "model", "n"]
    first = page["columns"][0]["id"]
    assert [row["cells"][first]["value"] for row in page["data"]] == [ids[0], ids[0], ids[1]]


def test_unknown_ids_are_counted_unless_the_limit_was_reached(
    client: TestClient, store: Store, sheet_url: str, ids: list[int]
) -> None:
    for limit, skipped in ((10, True), (1, False)):
        asked = into(client, sheet_url, request_log_ids=[ids[0], 999_999], limit=limit).json()
        work(store)
        message = client.get(asked["status_url"]).json()["operation"]["message"]
        assert ("1 of the ids were skipped" in message) == skipped


def test_the_same_import_is_started_once(
    client: TestClient, store: Store, sheet_url: str, ids: list[int]
) -> None:
    body = {"filter_group": {"logic": "AND", "filters": []}, "q": "question", "operation_id": "mine"}
    made = into(client, sheet_url, **body)
    work(store)
    for same in (
        {},
        {"filter_group": {"filters": []}},
        {"filter_group": {}},
        {"variables_to_parse": [], "include_fields": []},
        {"limit": None},
    ):
        assert into(client, sheet_url, **(body | same)).json() == made.json()
    assert list_waiting(store) == []
    for other in ({"q": "answer"}, {"filter_group": {"logic": "OR", "filters": []}}):
        assert into(client, sheet_url, **(body | other)).status_code == 409


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"filter_group": {}, "request_log_ids": [1]},
        {"filter_group": None, "request_log_ids": None},
        {"request_log_ids": [1], "q": "x"},
        {"request_log_ids": [1], "sort_by": "cost", "sort_order": "asc"},
        {"filter_group": {}, "sort_by": "cost"},
        {"filter_group": {}, "sort_order": "asc"},
        {"filter_group": {"filters": [{"field": "x"}]}},
        {"filter_group": {}, "limit": 50_001},
        {"filter_group": {}, "include_fields": ["colour"]},
        {"filter_group": {}, "operation_id": "a b"},
        {"filter_group": {}, "colour": 1},
        {"request_log_ids": []},
        {"request_log_ids": [0]},
        {"request_log_ids": list(range(1, 50_002))},
    ],
)
def test_an_import_that_does_not_fit_is_refused(
    client: TestClient, store: Store, sheet_url: str, body: dict[str, Any]
) -> None:
    answer = into(client, sheet_url, **body)
    assert (answer.status_code, answer.json()["error"]) == (422, "validation_error"), answer.text
    assert list_waiting(store) == []


def test_groups_as_deep_as_they_may_be_are_imported_by(
    client: TestClient, store: Store, table_id: str, sheet_url: str, ids: list[int]
) -> None:
    group: dict[str, Any] = is_("engine", "gpt-4o")
    for at in range(199):
        group = {"logic": "OR" if at % 2 else "AND", "filters": [group]}
    assert into(client, sheet_url, filter_group=group).status_code == 202
    work(store)
    assert client.get(sheet_url).json()["sheet"]["row_count"] == 3
    assert values(history(client, store, table_id, filter_group=group), "request_id") == ids[::-1]
    deeper = {"filters": [group]}
    assert into(client, sheet_url, filter_group=deeper).status_code == 422
    body = {"source": {"type": "request_logs", "filter_group": deeper}}
    assert client.post(f"{TABLES}/{table_id}/sheets", json=body).status_code == 422


@pytest.mark.parametrize(
    "source",
    [
        {"request_log_ids": []},
        {"request_log_ids": [0]},
        {"request_log_ids": ["7"]},
        {"request_log_ids": list(range(1, 50_002))},
        {"limit": 0},
        {"limit": 50_001},
        {"include_fields": ["colour"]},
        {"include_fields": ["metadata."]},
        {"variables_to_parse": [""]},
        {"variables_to_parse": ["x" * 256]},
        {"start_time": "yesterday"},
        {"prompt_id": True},
        {"filter_group": []},
        {"filter_group": {"filters": [{"field": "colour"}]}},
        {"sort_by": "cost"},
        {"sort_order": "asc"},
        {"sort_by": "model", "sort_order": "asc"},
        {"q": "x" * 1_001},
        {"colour": "red"},
        {"file_name": "x.csv"},
    ],
)
def test_a_source_that_does_not_fit_is_refused_and_makes_nothing(
    client: TestClient, store: Store, table_id: str, source: dict[str, Any]
) -> None:
    body = {"source": {"type": "request_logs"} | source}
    answer = client.post(f"{TABLES}/{table_id}/sheets", json=body)
    assert (answer.status_code, answer.json()["error"]) == (422, "validation_error")
    assert client.get(f"{TABLES}/{table_id}").json()["table"]["sheet_count"] == 1
    assert list_waiting(store) == []


def test_requests_of_another_workspace_are_not_there(
    client: TestClient, store: Store, ids: list[int], foreign_key: str
) -> None:
    headers = {"X-API-KEY": foreign_key}
    made = client.post(TABLES, json={}, headers=headers).json()["table"]["id"]
    body = {"source": {"type": "request_logs", "request_log_ids": ids}, "operation_id": "theirs"}
    assert client.post(f"{TABLES}/{made}/sheets", json=body, headers=headers).status_code == 202
    (waiting,) = list_waiting(store)
    with pytest.raises(Refused):
        run_operation(WORK, store, waiting.no, 1, "run-1", lambda _: None)
    poll = client.get(f"{TABLES}/{made}/sheets/operations/theirs", headers=headers).json()["operation"]
    assert poll["error_message"] == "No requests matched"
