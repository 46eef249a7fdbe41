"""The main job on request history: log over HTTP, import by a Dagster run, read the rows."""

from typing import Any

from tests.e2e.test_operations import Import
from tests.stack import Stack

TABLES = "/api/public/v2/tables"


def exchange(question: str) -> dict[str, Any]:
    asked, answered = (
        [{"role": role, "content": [{"type": "text", "text": text}]}]
        for role, text in (("user", question), ("assistant", question.upper()))
    )
    return {
        "provider": "openai",
        "model": "gpt-4o",
        "input": {"type": "chat", "messages": asked},
        "output": {"type": "chat", "messages": answered},
        "request_start_time": "2026-01-02T00:00:00Z",
        "request_end_time": "2026-01-02T00:00:01Z",
        "prompt_input_variables": {"question": question},
    }


def test_requests_just_logged_become_rows_of_a_sheet(stack: Stack) -> None:
    ids = [stack.api.post("/log-request", json=exchange(f"why {n}?")).json()["id"] for n in range(5)]
    table_id = stack.api.post(TABLES, json={}).json()["table"]["id"]
    source = {"type": "request_logs", "request_log_ids": ids, "variables_to_parse": ["question"]}
    made = stack.api.post(f"{TABLES}/{table_id}/sheets", json={"source": source}).json()
    started = Import(stack, table_id, made["sheet"]["id"], made["operation_id"])
    ended = started.wait("succeeded", "failed")
    assert (ended["status"], ended["rows_added"], ended["row_count"]) == ("succeeded", 5, 5)
    started.wait_run("SUCCESS")
    page = stack.api.get(f"{TABLES}/{table_id}/sheets/{started.sheet_id}/rows").json()
    titles = {column["id"]: column["title"] for column in page["columns"]}
    rows = [
        {titles[one]: cell["display_value"] for one, cell in row["cells"].items()} for row in page["data"]
    ]
    assert rows[4] == {
        "request_id": str(ids[4]),
        "input": "[user]: why 4?",
        "output": "WHY 4?",
        "question": "why 4?",
    }


def test_history_without_a_match_fails_and_says_so(stack: Stack) -> None:
    table_id = stack.api.post(TABLES, json={}).json()["table"]["id"]
    source = {"type": "request_logs", "request_log_ids": [9_000_000_000]}
    made = stack.api.post(f"{TABLES}/{table_id}/sheets", json={"source": source}).json()
    started = Import(stack, table_id, made["sheet"]["id"], made["operation_id"])
    assert started.wait("succeeded", "failed")["error_message"] == "No requests matched"
    assert started.row_count() == 0


def test_what_a_search_finds_is_added_to_a_sheet_in_its_order(stack: Stack) -> None:
    ids = [
        stack.api.post("/log-request", json=exchange(f"zebra {n}?") | {"price": n}).json()["id"]
        for n in (2, 3, 1)
    ]
    table = stack.api.post(TABLES, json={}).json()["table"]
    (sheet_id,) = table["sheet_row_counts"]
    url = f"{TABLES}/{table['id']}/sheets/{sheet_id}"
    group = {"filters": [{"field": "cost", "operator": "gte", "value": "2"}]}
    body = {"filter_group": group, "q": "ZEBRA", "sort_by": "cost", "sort_order": "desc"}
    asked = stack.api.post(f"{url}/imports/request-logs", json=body)
    assert asked.status_code == 202
    started = Import(stack, table["id"], sheet_id, asked.json()["operation_id"])
    assert started.wait("succeeded", "failed")["rows_added"] == 2
    page = stack.api.get(f"{url}/rows").json()
    first = page["columns"][0]["id"]
    assert [row["cells"][first]["value"] for row in page["data"]] == [ids[1], ids[0]]
