"""Logs a second through batches of 100 and of 1,000, against the bare route that takes one log a call."""

from tests.bench.bare import bare_server
from tests.bench.material import log_body
from tests.bench.measure import Bench, cpu_seconds, tool
from tests.bench.service import KEY, Service, running
from tests.bench.wrk import Load, load

SIZES = (100, 1_000)
CONNECTIONS = 4
_WARM_UP_S = 2


def run(bench: Bench) -> None:
    tool("wrk", "wrk")
    body, seconds = log_body(), bench.sized(20, 3)
    bare = [_bare(bench, body, min(seconds, 10))]
    with running(bench.folder / "home") as service:
        for size in SIZES:
            _measure(bench, service, body, size, seconds, bare[0])


def _bare(bench: Bench, body: bytes, seconds: int) -> Load:
    with bare_server() as url:
        load(bench.folder, url, body, KEY, connections=CONNECTIONS, seconds=_WARM_UP_S)
        return load(bench.folder, url, body, KEY, connections=CONNECTIONS, seconds=seconds)


def _measure(bench: Bench, service: Service, body: bytes, size: int, seconds: int, bare: Load) -> None:
    url = f"{service.url}/api/public/v2/requests/batch"
    batch = b'{"requests": [' + b",".join([body] * size) + b"]}"
    load(bench.folder, url, batch, KEY, connections=CONNECTIONS, seconds=_WARM_UP_S)
    before, cpu_before = _log_once(service, body), cpu_seconds(service.pid)
    seen = load(bench.folder, url, batch, KEY, connections=CONNECTIONS, seconds=seconds)
    cpu = cpu_seconds(service.pid)
    kept = _log_once(service, body) - before - 1
    logs_per_second = seen.per_second * size
    bench.report(
        f"durable logs a second by batches of {size}, {CONNECTIONS} connections, 3 KB",
        logs_per_second=round(logs_per_second),
        p50_ms=seen.p50_ms,
        p99_ms=seen.p99_ms,
        batches=seen.requests,
        errors=seen.errors,
        logs_kept=kept,
        cpu_us_per_log={
            name: round((used - cpu_before.get(name, 0.0)) / kept * 1e6, 1) for name, used in cpu.items()
        },
        yardstick_bare_per_second=bare.per_second,
        ratio=round(logs_per_second / bare.per_second, 3),
        # wrk gives up on what is under way when its time ends, also at the end of the warm-up
        met=seen.errors == 0 and 0 <= kept - seen.requests * size <= 2 * CONNECTIONS * size,
    )


def _log_once(service: Service, body: bytes) -> int:
    answer = service.client.post("/log-request", content=body, headers={"Content-Type": "application/json"})
    answer.raise_for_status()
    return int(answer.json()["id"])
