"""The whole service in a folder of its own: started by command, watched over HTTP, ended by a signal."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psutil

from storage.settings import Settings
from tests.ports import free_ports
from tests.processes import is_alive

KEY = "key-of-the-stack-under-test-0000000001"
READY_WITHIN_S = 90


@dataclass
class Stack:
    """A service that runs, or ran, on a home folder."""

    settings: Settings
    process: subprocess.Popen[bytes]
    api: httpx2.Client = field(init=False)

    def __post_init__(self) -> None:
        self.api = httpx2.Client(
            base_url=f"http://127.0.0.1:{self.settings.port}", headers={"X-API-KEY": KEY}, timeout=30
        )

    @property
    def home(self) -> Path:
        return self.settings.root

    def graphql(self, document: str, **variables: Any) -> dict[str, Any]:
        """Ask the Dagster UI's interface."""
        url = f"http://127.0.0.1:{self.settings.dagster_port}/graphql"
        answer = httpx2.post(url, json={"query": document, "variables": variables}, timeout=30).json()
        assert "errors" not in answer, answer
        return answer["data"]

    def pids(self) -> dict[str, int]:
        """Process ids of what the supervisor runs now, by name."""
        state = json.loads((self.home / "run" / "processes.json").read_text())
        return {one["name"]: one["pid"] for one in state["processes"] if one["pid"]}

    def tree(self) -> list[psutil.Process]:
        """The supervisor and everything below it."""
        supervisor = psutil.Process(self.process.pid)
        return [supervisor, *supervisor.children(recursive=True)]

    def wait_ready(self) -> None:
        """Wait until work is accepted and run; where it is not, say what each process said last."""
        try:
            wait_for(self._is_ready_or_ended, READY_WITHIN_S, "readiness")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self._state()}") from None
        assert self.process.poll() is None, f"it ended by itself: {self._state()}"

    def _is_ready_or_ended(self) -> bool:
        return self.process.poll() is not None or self.api.get("/ready").status_code == 200

    def _state(self) -> str:
        try:
            answer = self.api.get("/ready", timeout=5).text
        except httpx2.HTTPError as error:
            answer = repr(error)
        said = {
            path.stem: path.read_text(errors="replace").strip().splitlines()[-2:]
            for path in sorted([*self.home.glob("*.log"), *self.home.glob("logs/*.log")])
        }
        return f"exit status {self.process.poll()}, /ready {answer}, last lines {said}"

    def launch_probe(self, *, lane: str = "short", tenant: str = "1", **config: float) -> str:
        """Launch the probe job and return its run id."""
        document = """mutation($p: ExecutionParams!) { launchRun(executionParams: $p) {
          __typename ... on LaunchRunSuccess { run { runId } } } }"""
        repository = {"repositoryName": "__repository__", "repositoryLocationName": "promptlake"}
        tags = [{"key": "lane", "value": lane}, {"key": "workspace_id", "value": tenant}]
        run = {
            "selector": {**repository, "jobName": "probe"},
            "runConfigData": {"ops": {"probe_op": {"config": config}}},
            "executionMetadata": {"tags": tags},
        }
        launched = self.graphql(document, p=run)["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return launched["run"]["runId"]

    def status(self, run_id: str) -> str:
        found = self.graphql("query($i: ID!) { runOrError(runId: $i) { ... on Run { status } } }", i=run_id)
        return found["runOrError"].get("status", "MISSING")

    def wait_status(self, run_id: str, *wanted: str, within_s: float = 30) -> str:
        """Wait until a run has one of the statuses."""
        wait_for(lambda: self.status(run_id) in wanted, within_s, f"{wanted} of a run")
        return self.status(run_id)

    def events(self, run_id: str) -> list[dict[str, Any]]:
        document = """query($i: ID!) { logsForRun(runId: $i) { ... on EventConnection {
          events { __typename ... on MessageEvent { message } } } } }"""
        return self.graphql(document, i=run_id)["logsForRun"]["events"]

    def process_of(self, run_id: str) -> int:
        """Process id that a run says it has."""
        for event in self.events(run_id):
            if event["message"].startswith("Started process for run"):
                return int(event["message"].split("pid: ")[1].rstrip(")."))
        raise AssertionError("the run has not begun")

    @contextmanager
    def held(self, run_id: str) -> Iterator[None]:
        """Stop the process of a run for a block: what is sent to it meanwhile comes before its next step."""
        process = self.process_of(run_id)
        os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process, signal.SIGCONT)

    def kill_all(self) -> None:
        """Kill every process at once, as a power failure would."""
        for process in self.tree():
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        self.process.wait()

    def stop(self, within_s: float = 10) -> float:
        """End the service by SIGTERM; return the seconds that it took, and prove that nobody is left."""
        tree, started = self.tree(), time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(within_s) == 0
        took = time.monotonic() - started
        _, left = psutil.wait_procs(tree, timeout=1)
        # what the machine's first process has not reaped yet is no longer a process
        assert not [one for one in left if is_alive(one)], left
        return took


def wait_for(condition: Callable[[], Any], within_s: float, what: str) -> None:
    """Poll until a condition holds."""
    until = time.monotonic() + within_s
    while True:
        try:
            if condition():
                return
        except (httpx2.HTTPError, ValueError, FileNotFoundError):
            pass
        assert time.monotonic() < until, f"waited {within_s} s in vain for {what}"
        time.sleep(0.05)


def start(home: Path, *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Stack:
    """Start the service on a home folder; it may still be coming up when this returns."""
    dagster_port = free_ports(3)
    settings = Settings(home=home, port=dagster_port + 2, dagster_port=dagster_port)
    command = [str(Path(sys.executable).with_name("promptlake")), "up"]
    outer = {**os.environ, **settings.env(), "PROMPTLAKE_API_KEY": KEY, **(env or {})}
    home.mkdir(parents=True, exist_ok=True)
    with (home / "up.log").open("ab") as output:
        process = subprocess.Popen(command, env=outer, cwd=cwd or home, stdout=output, stderr=output)
    return Stack(settings, process)


@contextmanager
def running(home: Path, *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Iterator[Stack]:
    """Run the service for a block; it is ready when the block begins."""
    stack = start(home, env=env, cwd=cwd)
    try:
        stack.wait_ready()
        yield stack
    finally:
        stack.api.close()
        if stack.process.poll() is None:
            stack.kill_all()
