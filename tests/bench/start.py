"""From `promptlake up` to the first accepted request, first start and later; beside a bare server."""

import subprocess
import time
from contextlib import suppress
from pathlib import Path

import httpx2

from tests.bench.bare import bare_server
from tests.bench.material import log_body
from tests.bench.measure import Bench, summary
from tests.bench.service import Service, started

FIRST_TARGET_MS, LATER_TARGET_MS = 3_000, 1_500


def run(bench: Bench) -> None:
    first, later = [], []
    for number in range(bench.sized(3, 1)):
        home = bench.folder / f"home-{number}"
        first.append(_start_ms(home))
        later += [_start_ms(home) for _ in range(bench.sized(3, 1))]
    bare = _bare_ms()
    bench.report(
        "up to the first accepted log, first start",
        **summary(first),
        target_ms=FIRST_TARGET_MS,
        met=max(first) <= FIRST_TARGET_MS,
        yardstick_bare_server_ms=bare,
    )
    bench.report(
        "up to the first accepted log, later starts",
        **summary(later),
        target_ms=LATER_TARGET_MS,
        met=max(later) <= LATER_TARGET_MS,
        yardstick_bare_server_ms=bare,
    )


def _start_ms(home: Path) -> float:
    begun = time.perf_counter()
    with started(home) as service:
        _first_accepted(service)
        return (time.perf_counter() - begun) * 1000


def _first_accepted(service: Service) -> None:
    body = log_body()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(httpx2.TransportError):
            answer = service.client.post(
                "/log-request", content=body, headers={"Content-Type": "application/json"}
            )
            if answer.status_code == 201:
                return
        time.sleep(0.005)
    raise TimeoutError("no request was accepted within 60 s")


def _bare_ms() -> float:
    """Start of an interpreter that serves one validating route and nothing else."""
    begun = time.perf_counter()
    with suppress(subprocess.SubprocessError), bare_server() as url:
        httpx2.post(url, content=log_body(), headers={"Content-Type": "application/json"}).raise_for_status()
    return round((time.perf_counter() - begun) * 1000, 1)
