"""Recalculations as a person sees them in Dagster: waiting for a place, told, cancelled, killed."""

import base64
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.test_operations import RUNS, TERMINATE
from tests.stack import Stack, wait_for

LIMIT = """mutation($l: Int!) { setConcurrencyLimit(concurrencyKey: "model_calls", limit: $l) }"""
UNLIMITED = """mutation { deleteConcurrencyLimit(concurrencyKey: "model_calls") }"""
COLUMNS = """query($p: [String!]) { assetOrError(assetKey: {path: ["sheet_column"]}) { ... on Asset {
  assetMaterializations(partitions: $p) { runId metadataEntries { __typename label
    ... on IntMetadataEntry { intValue } ... on FloatMetadataEntry { floatValue }
    ... on TextMetadataEntry { text } ... on MarkdownMetadataEntry { mdStr }
    ... on TableMetadataEntry { table { records } } } } } } }"""


@dataclass
class Sheet:
    """A sheet of the service, with questions in it."""

    stack: Stack
    path: str

    @property
    def id(self) -> str:
        return self.path.rpartition("/")[2]

    def add(self, title: str, prompt: str) -> str:
        """Add a column that asks the built-in model; return the operation that computes it."""
        config = {"prompt": prompt, "engine": {"provider": "stub", "model": "echo"}}
        body = {"title": title, "type": "llm", "config": config}
        answer = self.stack.api.post(f"{self.path}/columns", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["operation_id"])

    def poll(self, operation_id: str) -> dict[str, Any]:
        answer = self.stack.api.get(f"{self.path}/operations/{operation_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json()["operation"])

    def wait(self, operation_id: str, *wanted: str, within_s: float = 60) -> dict[str, Any]:
        wait_for(lambda: self.poll(operation_id)["status"] in wanted, within_s, f"a recalculation {wanted}")
        return self.poll(operation_id)

    def cells(self, title: str) -> list[dict[str, Any]]:
        page = self.stack.api.get(f"{self.path}/rows?limit=1000").json()
        (column,) = [one["id"] for one in page["columns"] if one["title"] == title]
        return [row["cells"][column] for row in page["data"]]

    def runs(self, operation_id: str) -> list[dict[str, Any]]:
        found = self.stack.graphql(RUNS, t=[{"key": "operation_id", "value": operation_id}])
        return list(found["runsOrError"]["results"])


@pytest.fixture
def sheet(stack: Stack) -> Iterator[Sheet]:
    table = stack.api.post("/api/public/v2/tables", json={}).json()["table"]["id"]
    rows = "Q\n" + "".join(f"question {n}\n" for n in range(40))
    source = {
        "type": "file",
        "file_name": "q.csv",
        "file_content_base64": base64.b64encode(rows.encode()).decode(),
    }
    made = stack.api.post(f"/api/public/v2/tables/{table}/sheets", json={"source": source}).json()
    path = f"/api/public/v2/tables/{table}/sheets/{made['sheet']['id']}"
    poll = f"/api/public/v2/tables/{table}/sheets/operations/{made['operation_id']}"
    wait_for(lambda: stack.api.get(poll).json()["operation"]["status"] == "succeeded", 30, "the import")
    yield Sheet(stack, path)
    stack.api.delete(f"/api/public/v2/tables/{table}")


@pytest.mark.slow
def test_runs_that_ask_models_wait_for_a_place_in_their_pool(stack: Stack, sheet: Sheet) -> None:
    stack.graphql(LIMIT, l=0)
    try:
        operation = sheet.add("A", "{Q}")
        wait_for(lambda: [run["status"] for run in sheet.runs(operation)] == ["STARTED"], 30, "its run")
        time.sleep(1.5)
        assert sheet.poll(operation)["status"] == "queued"
        (waiting,) = sheet.runs(operation)
        assert stack.api.delete(f"{sheet.path}/operations/{operation}").json()["cancelled_cell_count"] == 40
        # what was cancelled leaves the queue
        assert stack.wait_status(waiting["runId"], "CANCELED", "FAILURE", "SUCCESS") == "CANCELED"
        again = stack.api.post(f"{sheet.path}/operations", json={}).json()["operation"]["operation_id"]
        operation = again
        wait_for(lambda: [run["status"] for run in sheet.runs(again)] == ["STARTED"], 30, "its run")
        stack.graphql(LIMIT, l=1)
        assert sheet.wait(operation, "completed", "failed")["status"] == "completed"
    finally:
        stack.graphql(UNLIMITED)


def test_each_column_is_told_with_what_it_took_and_what_failed(stack: Stack, sheet: Sheet) -> None:
    operation = sheet.add("A", "Told: {Q} [[stub:quota]]")
    assert sheet.wait(operation, "completed", "failed")["failed_count"] == 40
    # what others of the workspace asked would be answered from there
    other = sheet.add("B", "Told: {Q}")
    assert sheet.wait(other, "completed", "failed")["completed_count"] == 40
    (told, failed) = stack.graphql(COLUMNS, p=[sheet.id])["assetOrError"]["assetMaterializations"]
    entries = {one["label"]: one for one in told["metadataEntries"]}
    numbers = {name: entries[name]["intValue"] for name in ("rows", "computed", "cached", "failed")}
    assert numbers == {"rows": 40, "computed": 40, "cached": 0, "failed": 0}
    assert entries["seconds"]["floatValue"] > 0
    assert {"price", "tokens", "column_id", "type"} <= entries.keys()
    assert entries["latencies"]["mdStr"].count("█") >= 1
    (records,) = [one["table"]["records"] for one in failed["metadataEntries"] if one["label"] == "errors"]
    assert [json.loads(one) for one in records] == [{"error": "PROVIDER_QUOTA_LIMIT", "cells": 40}]
    assert "question" not in str(told) + str(failed)


def test_a_recalculation_cancelled_in_the_ui_ends_cancelled_and_its_cells_are_as_they_were(
    stack: Stack, sheet: Sheet
) -> None:
    operation = sheet.add("A", "{Q} [[stub:slow 30]]")
    sheet.wait(operation, "running")
    wait_for(lambda: sheet.cells("A")[0]["status"] == "running", 10, "running cells")
    (run,) = sheet.runs(operation)
    assert stack.graphql(TERMINATE, i=run["runId"])["terminateRun"]["__typename"] == "TerminateRunSuccess"
    ended = sheet.wait(operation, "cancelled", "failed", "completed", within_s=30)
    assert (ended["status"], ended["status_counts"]) == ("cancelled", {"stale": 40})
    assert stack.wait_status(run["runId"], "CANCELED", "FAILURE", "SUCCESS") == "CANCELED"
    assert {cell["status"] for cell in sheet.cells("A")} == {"stale"}


@pytest.mark.slow
def test_a_run_killed_in_the_middle_of_a_level_goes_on_where_it_was(stack: Stack, sheet: Sheet) -> None:
    for title in ("A", "B"):
        operation = sheet.add(title, title + " {Q} [[stub:slow 0.5]]")
        stack.api.delete(f"{sheet.path}/operations/{operation}")
    answer = stack.api.post(f"{sheet.path}/operations", json={}).json()
    operation = answer["operation"]["operation_id"]
    wait_for(lambda: sheet.poll(operation)["completed_count"] >= 20, 60, "some cells")
    (run,) = sheet.runs(operation)
    os.kill(stack.process_of(run["runId"]), signal.SIGKILL)
    ended = sheet.wait(operation, "completed", "failed", "cancelled", within_s=120)
    assert (ended["status"], ended["completed_count"], ended["failed_count"]) == ("completed", 80, 0)
    wait_for(
        lambda: sorted(run["status"] for run in sheet.runs(operation)) == ["FAILURE", "SUCCESS"],
        10,
        "the end of the second run",
    )
    asked = {
        "filter_group": {
            "logic": "AND",
            "filters": [
                {
                    "field": "metadata",
                    "nested_key": "execution_id",
                    "operator": "key_equals",
                    "value": operation,
                }
            ],
        }
    }
    total = stack.api.post("/api/public/v2/requests/search", json=asked).json()["total"]
    # those that were in flight are paid twice, and what came in the last tenth of a second
    assert 80 <= total <= 80 + 2 * stack.settings.model_calls
