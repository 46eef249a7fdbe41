"""Durable ingest by wrk at 16 connections, against the bare route and beside the disk's fdatasync."""

from tests.bench.bare import bare_server
from tests.bench.material import log_body
from tests.bench.measure import Bench, fdatasync_ms, tool
from tests.bench.service import KEY, Service, running
from tests.bench.wrk import Load, load

CONNECTIONS = 16
RATIO_TARGET, SLOW_DISK_RATIO_TARGET = 0.45, 0.8
P99_TARGET_MS, PER_SECOND_TARGET = 50.0, 8_000
SLOW_DISK_MS = 1.0


def run(bench: Bench) -> None:
    tool("wrk", "wrk")
    seconds = bench.sized(60, 5)
    body = log_body()
    disk = fdatasync_ms(bench.folder)
    bare = [_bare(bench, body, seconds)]
    with running(bench.folder / "home") as service:
        load(bench.folder, f"{service.url}/log-request", body, KEY, connections=CONNECTIONS, seconds=2)
        before = _log_once(service, body)
        real = load(
            bench.folder, f"{service.url}/log-request", body, KEY, connections=CONNECTIONS, seconds=seconds
        )
        kept = _log_once(service, body) - before - 1
    bare.append(_bare(bench, body, seconds))
    _report(bench, real, bare, disk, len(body), kept)


def _bare(bench: Bench, body: bytes, seconds: int) -> Load:
    """The yardstick, taken before and after the service so that what else the machine does meets both."""
    with bare_server() as url:
        load(bench.folder, url, body, KEY, connections=CONNECTIONS, seconds=2)
        return load(bench.folder, url, body, KEY, connections=CONNECTIONS, seconds=min(seconds, 15))


def _report(bench: Bench, real: Load, bare: list[Load], disk: dict[str, float], size: int, kept: int) -> None:
    bare_per_second = sum(one.per_second for one in bare) / len(bare)
    ratio = real.per_second / bare_per_second
    slow_disk = disk["p50_ms"] > SLOW_DISK_MS
    target = _slow_disk_target(bare_per_second, disk) if slow_disk else RATIO_TARGET
    bench.report(
        "durable logs a second, 16 connections",
        per_second=real.per_second,
        p50_ms=real.p50_ms,
        p95_ms=real.p95_ms,
        p99_ms=real.p99_ms,
        max_ms=real.max_ms,
        requests=real.requests,
        errors=real.errors,
        logs_kept=kept,
        body_bytes=size,
        yardstick_bare_per_second=[one.per_second for one in bare],
        yardstick_bare_p99_ms=[one.p99_ms for one in bare],
        ratio=round(ratio, 3),
        target_ratio=round(target, 3),
        target_p99_ms=P99_TARGET_MS,
        target_per_second=PER_SECOND_TARGET,
        fdatasync=disk,
        met=ratio >= target
        and real.p99_ms < P99_TARGET_MS
        and real.per_second >= PER_SECOND_TARGET
        and real.errors == 0
        # wrk gives up on what is under way when its time ends: those may be kept without being counted
        and 0 <= kept - real.requests <= CONNECTIONS,
    )


def _slow_disk_target(bare_per_second: float, disk: dict[str, float]) -> float:
    """0.8 of a bare route that also waits for one fdatasync a group of all connections."""
    group_s = CONNECTIONS / bare_per_second + disk["p50_ms"] / 1000
    return SLOW_DISK_RATIO_TARGET * (CONNECTIONS / group_s) / bare_per_second


def _log_once(service: Service, body: bytes) -> int:
    """Log once and return the id; ids are given in order, so two of them count what lies between."""
    answer = service.client.post("/log-request", content=body, headers={"Content-Type": "application/json"})
    answer.raise_for_status()
    return int(answer.json()["id"])
