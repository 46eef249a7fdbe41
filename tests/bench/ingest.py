"""Durable ingest by wrk at 16 connections, against the bare route and beside the disk's fdatasync."""

import os
from dataclasses import dataclass

from tests.bench.bare import bare_server
from tests.bench.material import log_body
from tests.bench.measure import Bench, cpu_seconds, fdatasync_ms, tool
from tests.bench.service import KEY, Service, running
from tests.bench.wrk import Load, load

CONNECTIONS = 16
RATIO_TARGET, SLOW_DISK_RATIO_TARGET = 0.45, 0.8
P99_TARGET_MS, PER_SECOND_TARGET = 50.0, 8_000
SLOW_DISK_MS = 1.0
_WARM_UP_S = 2


@dataclass(frozen=True, slots=True)
class Loaded:
    """A load, and the CPU time that each request cost, by role in microseconds."""

    load: Load
    cpu_us: dict[str, float]


def run(bench: Bench) -> None:
    tool("wrk", "wrk")
    body, seconds = log_body(), bench.sized(60, 5)
    disk = fdatasync_ms(bench.folder)
    # the yardstick before and after, so that what else the machine does meets both
    bare = [_bare(bench, body, min(seconds, 15))]
    with running(bench.folder / "home") as service:
        url = f"{service.url}/log-request"
        _load(bench, url, body, _WARM_UP_S, service.pid)
        before = _log_once(service, body)
        real = _load(bench, url, body, seconds, service.pid)
        kept = _log_once(service, body) - before - 1
    bare.append(_bare(bench, body, min(seconds, 15)))
    _report(bench, real, bare, disk, kept)


def _bare(bench: Bench, body: bytes, seconds: int) -> Loaded:
    with bare_server() as url:
        _load(bench, url, body, _WARM_UP_S, os.getpid())
        return _load(bench, url, body, seconds, os.getpid())


def _load(bench: Bench, url: str, body: bytes, seconds: int, pid: int) -> Loaded:
    before = cpu_seconds(pid)
    seen = load(bench.folder, url, body, KEY, connections=CONNECTIONS, seconds=seconds)
    used = {name: total - before.get(name, 0.0) for name, total in cpu_seconds(pid).items()}
    known = {name: time for name, time in used.items() if name != "other" and time > 0}
    return Loaded(seen, {name: round(time / seen.requests * 1e6, 1) for name, time in sorted(known.items())})


def _report(bench: Bench, real: Loaded, bare: list[Loaded], disk: dict[str, float], kept: int) -> None:
    seen = real.load
    bare_per_second = sum(one.load.per_second for one in bare) / len(bare)
    ratio = seen.per_second / bare_per_second
    slow_disk = disk["p50_ms"] > SLOW_DISK_MS
    target = _slow_disk_target(bare_per_second, disk) if slow_disk else RATIO_TARGET
    bench.report(
        "durable logs a second, 16 connections, 3 KB",
        per_second=seen.per_second,
        p50_ms=seen.p50_ms,
        p95_ms=seen.p95_ms,
        p99_ms=seen.p99_ms,
        max_ms=seen.max_ms,
        requests=seen.requests,
        errors=seen.errors,
        logs_kept=kept,
        cpu_us_per_log=real.cpu_us,
        yardstick_bare_per_second=[one.load.per_second for one in bare],
        yardstick_bare_p99_ms=[one.load.p99_ms for one in bare],
        yardstick_bare_cpu_us=[one.cpu_us["bare"] for one in bare],
        ratio=round(ratio, 3),
        target_ratio=round(target, 3),
        target_p99_ms=P99_TARGET_MS,
        target_per_second=PER_SECOND_TARGET,
        fdatasync=disk,
        met=ratio >= target
        and seen.p99_ms < P99_TARGET_MS
        and seen.per_second >= PER_SECOND_TARGET
        and seen.errors == 0
        # wrk gives up on what is under way when its time ends: those may be kept without being counted
        and 0 <= kept - seen.requests <= CONNECTIONS,
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
