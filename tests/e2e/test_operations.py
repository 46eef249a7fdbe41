"""An operation tells the truth about its run: killed, cancelled, executed again, waiting for its host."""

import base64
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import stack as stacks
from tests.stack import Stack, wait_for

TERMINATE = """mutation($i: String!) { terminateRun(runId: $i) { __typename } }"""
AGAIN = """mutation($i: String!) {
  launchRunReexecution(reexecutionParams: {parentRunId: $i, strategy: ALL_STEPS}) {
    __typename ... on LaunchRunSuccess { run { runId } } } }"""
RUNS = """query($t: [ExecutionTag!]) { runsOrError(filter: {tags: $t}) { ... on Runs {
  results { runId status tags { key value } } } } }"""
SMALL = b"question,answer\n" + b"".join(b"What is %d?,%d\n" % (n, n) for n in range(10))


LARGE_ROWS = 1_500_000


def large() -> bytes:
    """A file (16 MB) whose import takes some four seconds: with short records it is read one by one."""
    line, short = b"%d,left,right\n", b"%d\n"
    return b"id,left,right\n" + b"".join((line if n % 10 else short) % n for n in range(LARGE_ROWS))


@dataclass
class Import:
    """An import that was asked for."""

    stack: Stack
    table_id: str
    sheet_id: str
    operation_id: str

    def poll(self) -> dict[str, Any]:
        answer = self.stack.api.get(
            f"/api/public/v2/tables/{self.table_id}/sheets/operations/{self.operation_id}"
        )
        assert answer.status_code == 200, answer.text
        return answer.json()["operation"]

    def wait(self, *wanted: str, within_s: float = 30) -> dict[str, Any]:
        wait_for(lambda: self.poll()["status"] in wanted, within_s, f"{wanted} of an import")
        return self.poll()

    def runs(self) -> list[dict[str, Any]]:
        found = self.stack.graphql(RUNS, t=[{"key": "operation_id", "value": self.operation_id}])
        return found["runsOrError"]["results"]

    def wait_run(self, status: str) -> str:
        wait_for(lambda: [run for run in self.runs() if run["status"] == status], 30, f"a run {status}")
        return next(run["runId"] for run in self.runs() if run["status"] == status)

    def row_count(self) -> int:
        answer = self.stack.api.get(f"/api/public/v2/tables/{self.table_id}/sheets/{self.sheet_id}")
        return int(answer.json()["sheet"]["row_count"])


def start_import(stack: Stack, content: bytes, operation_id: str | None = None) -> Import:
    table_id = stack.api.post("/api/public/v2/tables", json={}).json()["table"]["id"]
    source = {
        "type": "file",
        "file_name": "rows.csv",
        "file_content_base64": base64.b64encode(content).decode(),
    }
    body = {"source": source} | ({"operation_id": operation_id} if operation_id else {})
    answer = stack.api.post(f"/api/public/v2/tables/{table_id}/sheets", json=body)
    assert answer.status_code == 202, answer.text
    found = answer.json()
    return Import(stack, table_id, found["sheet"]["id"], found["operation_id"])


def test_an_import_is_one_run_tagged_with_what_it_works_for(stack: Stack) -> None:
    started = start_import(stack, SMALL, "tagged-1")
    assert started.wait("succeeded", "failed")["status"] == "succeeded"
    assert started.row_count() == 10
    (run,) = started.runs()
    tags = {tag["key"]: tag["value"] for tag in run["tags"]}
    assert tags["operation_id"] == "tagged-1"
    assert tags["sheet_id"] == tags["dagster/partition"] == started.sheet_id
    assert (tags["kind"], tags["lane"], tags["workspace_id"]) == ("import_file", "short", "1")
    stack.wait_status(run["runId"], "SUCCESS")


def test_no_answer_tag_or_configuration_of_a_run_holds_a_local_path(stack: Stack) -> None:
    started = start_import(stack, SMALL)
    started.wait("succeeded")
    document = """query($i: ID!) { runOrError(runId: $i) { ... on Run {
      runConfigYaml tags { key value } } } }"""
    run_id = started.wait_run("SUCCESS")
    seen = [stack.graphql(document, i=run_id), stack.events(run_id), started.poll()]
    assert str(stack.home) not in str(seen)


def test_killing_the_process_of_a_run_fails_its_import_and_executing_it_again_mends_it(stack: Stack) -> None:
    started = start_import(stack, large())
    run_id = started.wait_run("STARTED")
    started.wait("running")
    os.kill(stack.process_of(run_id), signal.SIGKILL)
    ended = started.wait("failed", "succeeded", within_s=15)
    assert ended["status"] == "failed"
    assert run_id in ended["error_message"]
    assert started.row_count() == 0
    stack.wait_status(run_id, "FAILURE")
    again = stack.graphql(AGAIN, i=run_id)["launchRunReexecution"]
    assert again["__typename"] == "LaunchRunSuccess"
    assert started.wait("succeeded", within_s=60)["error_message"] is None
    assert started.row_count() == LARGE_ROWS


def test_cancelling_the_run_in_dagster_ends_the_import_cancelled_with_nothing_added(stack: Stack) -> None:
    started = start_import(stack, large())
    run_id = started.wait_run("STARTED")
    with stack.held(run_id):
        assert stack.graphql(TERMINATE, i=run_id)["terminateRun"]["__typename"] == "TerminateRunSuccess"
    ended = started.wait("failed", "succeeded", within_s=15)
    assert (ended["status"], ended["error_message"]) == ("failed", "cancelled")
    assert started.row_count() == 0
    stack.wait_status(run_id, "CANCELED")


def test_an_import_waits_while_the_host_is_away_and_ends_well_once_it_is_back(stack: Stack) -> None:
    host = stack.pids()["worker-host"]
    os.kill(host, signal.SIGSTOP)
    try:
        started = start_import(stack, SMALL)
        time.sleep(4)
        assert started.poll()["status"] == "queued"
    finally:
        os.kill(host, signal.SIGCONT)
    assert started.wait("succeeded", "failed", within_s=40)["status"] == "succeeded"
    assert started.row_count() == 10


@pytest.mark.slow
def test_after_a_crash_of_everything_the_truth_stands_within_15_s_of_the_restart(tmp_path: Path) -> None:
    with stacks.running(tmp_path / "home") as stack:
        done = start_import(stack, SMALL)
        done.wait("succeeded")
        lost = start_import(stack, large())
        lost.wait_run("STARTED")
        lost.wait("running")
        stack.kill_all()
    with stacks.running(tmp_path / "home") as stack:
        for started in (done, lost):
            started.stack = stack
        assert lost.wait("failed", "succeeded", within_s=15)["status"] == "failed"
        assert done.poll()["status"] == "succeeded"
        assert (lost.row_count(), done.row_count()) == (0, 10)
        assert start_import(stack, SMALL).wait("succeeded", "failed")["status"] == "succeeded"


@pytest.mark.slow
def test_what_arrives_before_dagster_is_up_is_queued_and_runs(tmp_path: Path) -> None:
    stack = stacks.start(tmp_path / "home")
    try:
        wait_for(lambda: stack.api.get("/health").status_code == 200, 20, "the API")
        started = start_import(stack, SMALL)
        assert started.poll()["status"] == "queued"
        assert started.wait("succeeded", "failed", within_s=60)["status"] == "succeeded"
        stack.wait_ready()
        assert [run["status"] for run in started.runs()] == ["SUCCESS"]
    finally:
        stack.api.close()
        stack.kill_all()
