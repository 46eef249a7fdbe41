"""The ten-row import again, beside eight runs that wait and two that compute: quiet is the yardstick."""

import time

from tests.bench.latency import measure
from tests.bench.measure import Bench, summary
from tests.bench.runs import Dagster
from tests.bench.service import running

WAITING, COMPUTING = 8, 2
P95_TARGET_MS = 1_000
# Room for all ten runs and the short lane, so that the ten truly run instead of standing in line.
_PROCESSES = WAITING + COMPUTING + 4


def run(bench: Bench) -> None:
    n = bench.sized(100, 10)
    with running(bench.folder / "home", env={"PROMPTLAKE_MAX_RUN_PROCESSES": str(_PROCESSES)}) as service:
        dagster = Dagster(service.dagster_url)
        quiet = summary([one.total_ms for one in measure(service, dagster, n // 2, warm_up=5)])
        others = _occupy(dagster, seconds=bench.sized(600, 120))
        going = _wait_until_going(dagster, others)
        measured = measure(service, dagster, n, warm_up=2)
        still = _going(dagster, others)
        dagster.end(others)
        dagster.close()
    total = summary([one.total_ms for one in measured])
    bench.report(
        "10-row import beside 8 waiting and 2 computing runs, POST to succeeded",
        **total,
        start=summary([one.start_ms for one in measured]),
        runs_going_before=going,
        runs_going_after=still,
        target_p95_ms=P95_TARGET_MS,
        yardstick_quiet=quiet,
        ratio_p50=round(total["p50_ms"] / quiet["p50_ms"], 2),
        met=total["p95_ms"] <= P95_TARGET_MS and going == still == WAITING + COMPUTING,
    )


def _occupy(dagster: Dagster, seconds: float) -> list[str]:
    waiting = [
        dagster.launch("probe", "probe_op", {"wait_s": seconds}, {"lane": "wait"}) for _ in range(WAITING)
    ]
    computing = [
        dagster.launch("probe", "probe_op", {"compute_s": seconds}, {"lane": "compute"})
        for _ in range(COMPUTING)
    ]
    return waiting + computing


def _wait_until_going(dagster: Dagster, run_ids: list[str], seconds: float = 30) -> int:
    deadline = time.monotonic() + seconds
    while (going := _going(dagster, run_ids)) < len(run_ids) and time.monotonic() < deadline:
        time.sleep(0.2)
    return going


def _going(dagster: Dagster, run_ids: list[str]) -> int:
    return sum(dagster.find(run_id=run_id)[0].status == "STARTED" for run_id in run_ids)
