"""The real service for a benchmark: `promptlake up` in a folder of its own, on free ports, and a client."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psutil

from tests.bench.measure import python
from tests.ports import free_ports

KEY = "bench-key-of-the-default-workspace-001"
READY_WITHIN_S = 90.0
STOP_WITHIN_S = 15.0


class NotStarted(RuntimeError):
    """The service ended or did not become ready in time; the message holds the end of its output."""


@dataclass(frozen=True, slots=True)
class Service:
    """A running service."""

    url: str
    dagster_url: str
    pid: int
    home: Path
    client: httpx2.Client

    def post(self, path: str, body: Any, *, status: int = 201) -> dict[str, Any]:
        """POST and return the answer, which must have the status."""
        return _body(self.client.post(path, json=body), status)

    def get(self, path: str) -> dict[str, Any]:
        return _body(self.client.get(path), 200)


def _body(answer: httpx2.Response, status: int) -> dict[str, Any]:
    if answer.status_code != status:
        raise RuntimeError(
            f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text[:300]}"
        )
    found: dict[str, Any] = answer.json()
    return found


@contextmanager
def started(home: Path, *, env: Mapping[str, str] | None = None) -> Iterator[Service]:
    """Start `promptlake up` and yield at once; stop it when the block ends."""
    dagster_port = free_ports(3)
    port = dagster_port + 2
    home.parent.mkdir(parents=True, exist_ok=True)
    outer = {name: text for name, text in os.environ.items() if not name.startswith("PROMPTLAKE_")}
    with (home.parent / "up.log").open("ab") as output:
        process = subprocess.Popen(
            [
                *[python(), "-m", "api.cli", "up", "--home", str(home)],
                *["--port", str(port), "--dagster-port", str(dagster_port)],
            ],
            env={**outer, "PROMPTLAKE_API_KEY": KEY, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}"
    client = httpx2.Client(base_url=url, headers={"X-API-KEY": KEY}, timeout=60)
    try:
        yield Service(url, f"http://127.0.0.1:{dagster_port}", process.pid, home, client)
    finally:
        client.close()
        _stop(process)


@contextmanager
def running(home: Path, *, env: Mapping[str, str] | None = None) -> Iterator[Service]:
    """As `started`, and wait until `/ready` says that work is accepted and run."""
    with started(home, env=env) as service:
        wait_ready(service)
        yield service


def wait_ready(service: Service) -> None:
    """Wait until the service runs work.

    Raises:
        NotStarted: it ended, or took too long.
    """
    deadline = time.monotonic() + READY_WITHIN_S
    last = "no answer"
    while time.monotonic() < deadline:
        with suppress(httpx2.TransportError):
            answer = service.client.get("/ready")
            if answer.status_code == 200:
                return
            last = answer.text[:500]
        if not psutil.pid_exists(service.pid):
            break
        time.sleep(0.1)
    output = (service.home.parent / "up.log").read_text(errors="replace")[-2000:]
    raise NotStarted(f"not ready: {last}\n{output}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    below = []
    with suppress(psutil.Error):
        below = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    # Processes of ours that the supervisor should have ended: none may outlive the benchmark.
    for left in below:
        with suppress(psutil.Error):
            left.kill()
