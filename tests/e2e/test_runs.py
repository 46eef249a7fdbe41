"""Runs as a person sees them in Dagster: executed warm, logged, cancelled, executed again."""

import os
import signal

import psutil
import pytest

from tests.stack import Stack, wait_for

TERMINATE = """mutation($i: String!) { terminateRun(runId: $i) { __typename } }"""
AGAIN = """mutation($i: String!) {
  launchRunReexecution(reexecutionParams: {parentRunId: $i, strategy: ALL_STEPS}) {
    __typename ... on LaunchRunSuccess { run { runId tags { key value } } } } }"""


def test_a_run_is_executed_by_a_waiting_process_of_the_host(stack: Stack) -> None:
    run_id = stack.launch_probe()
    assert stack.wait_status(run_id, "SUCCESS", "FAILURE") == "SUCCESS"
    messages = [event["message"] for event in stack.events(run_id)]
    assert "The probe has run." in messages
    host = psutil.Process(stack.pids()["worker-host"])
    assert stack.process_of(run_id) in {child.pid for child in host.children()}
    # The stock launcher tags its runs with the code server's address.
    tags = stack.graphql("query($i: ID!) { runOrError(runId: $i) { ... on Run { tags { key } } } }", i=run_id)
    assert ".dagster/grpc_info" not in {tag["key"] for tag in tags["runOrError"]["tags"]}
    code_server = psutil.Process(stack.pids()["code-server"])
    assert not code_server.children()


def test_one_process_executes_several_runs(stack: Stack) -> None:
    pids = set()
    for _ in range(4):
        run_id = stack.launch_probe()
        stack.wait_status(run_id, "SUCCESS")
        pids.add(stack.process_of(run_id))
    assert len(pids) < 4


def test_a_run_cancelled_in_the_ui_stops_and_can_be_executed_again(stack: Stack) -> None:
    run_id = stack.launch_probe(wait_s=60)
    stack.wait_status(run_id, "STARTED")
    assert stack.graphql(TERMINATE, i=run_id)["terminateRun"]["__typename"] == "TerminateRunSuccess"
    assert stack.wait_status(run_id, "CANCELED", "FAILURE", "SUCCESS", within_s=20) == "CANCELED"
    again = stack.graphql(AGAIN, i=run_id)["launchRunReexecution"]
    assert again["__typename"] == "LaunchRunSuccess"
    assert {"key": "dagster/parent_run_id", "value": run_id} in again["run"]["tags"]
    stack.wait_status(again["run"]["runId"], "STARTED")
    stack.graphql(TERMINATE, i=again["run"]["runId"])
    stack.wait_status(again["run"]["runId"], "CANCELED", within_s=20)


def test_a_run_whose_process_is_killed_fails_with_its_cause(stack: Stack) -> None:
    run_id = stack.launch_probe(wait_s=60)
    stack.wait_status(run_id, "STARTED")
    os.kill(stack.process_of(run_id), signal.SIGKILL)
    assert stack.wait_status(run_id, "FAILURE", "SUCCESS", within_s=20) == "FAILURE"
    assert any("SIGKILL" in event["message"] for event in stack.events(run_id))
    other = stack.launch_probe()
    assert stack.wait_status(other, "SUCCESS", "FAILURE") == "SUCCESS"


def test_long_runs_of_other_lanes_do_not_keep_a_short_one_waiting(stack: Stack) -> None:
    long = [stack.launch_probe(lane="wait", wait_s=30) for _ in range(4)]
    long += [stack.launch_probe(lane="compute", wait_s=50) for _ in range(4)]
    try:
        for run_id in long[:4]:
            stack.wait_status(run_id, "STARTED")
        short = stack.launch_probe(lane="short")
        assert stack.wait_status(short, "SUCCESS", "FAILURE", within_s=20) == "SUCCESS"
        cores = os.cpu_count() or 1
        wait_for(lambda: _count(stack, long[4:], "STARTED") == min(4, cores), 15, "the compute lane")
        assert _count(stack, long[4:], "STARTING") == 4 - min(4, cores)
    finally:
        _cancel(stack, long)


def test_a_run_that_computes_steps_back_for_those_that_a_client_waits_for(stack: Stack) -> None:
    computing, short = (
        stack.launch_probe(lane="compute", wait_s=5),
        stack.launch_probe(lane="short", wait_s=5),
    )
    for run_id in (computing, short):
        stack.wait_status(run_id, "STARTED")
    slow, quick = (psutil.Process(stack.process_of(run_id)) for run_id in (computing, short))
    wait_for(lambda: slow.nice() > quick.nice(), 4, "stepping back")
    stack.wait_status(computing, "SUCCESS")
    # only a privileged process could step forward again: it takes no other run
    wait_for(lambda: not slow.is_running(), 20, "the end of the process that computed")


def test_processes_that_computed_little_stay_for_the_next_run(stack: Stack) -> None:
    pids = set()
    for _ in range(4):
        run_id = stack.launch_probe(lane="compute")
        stack.wait_status(run_id, "SUCCESS")
        pids.add(stack.process_of(run_id))
    assert len(pids) < 4
    assert all(psutil.pid_exists(pid) for pid in pids)


def _count(stack: Stack, run_ids: list[str], status: str) -> int:
    return sum(stack.status(run_id) == status for run_id in run_ids)


def _cancel(stack: Stack, run_ids: list[str]) -> None:
    document = """mutation($i: String!) {
      terminateRun(runId: $i, terminatePolicy: MARK_AS_CANCELED_IMMEDIATELY) { __typename } }"""
    for run_id in reversed(run_ids):
        stack.graphql(document, i=run_id)
    wait_for(lambda: _count(stack, run_ids, "CANCELED") == len(run_ids), 20, "cancellation")


@pytest.mark.slow
def test_a_stopped_host_starts_again_and_loses_no_run_that_waited(stack: Stack) -> None:
    host = stack.pids()["worker-host"]
    waiting = [stack.launch_probe(lane="compute", wait_s=2) for _ in range(6)]
    stack.wait_status(waiting[0], "STARTED")
    os.kill(host, signal.SIGKILL)
    wait_for(lambda: stack.pids().get("worker-host", host) != host, 20, "a new host")
    ended = [stack.wait_status(run_id, "SUCCESS", "FAILURE", within_s=60) for run_id in waiting]
    # Those that had begun died with their host; those that waited are done by the next one.
    assert ended.count("FAILURE") <= (os.cpu_count() or 1)
    assert ended.count("SUCCESS") >= 6 - (os.cpu_count() or 1)
