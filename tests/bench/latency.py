"""A ten-row import on a quiet service, POST to `succeeded`; beside it an empty Dagster run."""

from tests.bench.imports import Imported, import_small, table_of
from tests.bench.measure import Bench, summary
from tests.bench.runs import Dagster
from tests.bench.service import Service, running

P50_TARGET_MS, P95_TARGET_MS, START_TARGET_MS = 250, 500, 100


def run(bench: Bench) -> None:
    with running(bench.folder / "home") as service:
        dagster = Dagster(service.dagster_url)
        measured = measure(service, dagster, bench.sized(100, 10), warm_up=5)
        empty = empty_runs(dagster, bench.sized(50, 5))
        dagster.close()
    report(bench, measured, empty)


def measure(service: Service, dagster: Dagster, n: int, *, warm_up: int) -> list[Imported]:
    """Import `n` small files one after another, after a few that do not count."""
    table = table_of(service)
    for _ in range(warm_up):
        import_small(service, dagster, table)
    return [import_small(service, dagster, table) for _ in range(n)]


def empty_runs(dagster: Dagster, n: int) -> dict[str, float]:
    """Time runs that do nothing, from the launch to their end by Dagster's own clock."""
    times = []
    for _ in range(n):
        run_id = dagster.launch("probe", "probe_op", {}, {"lane": "short"})
        ended = dagster.wait(run_id, "SUCCESS")
        times.append(((ended.ended or 0) - ended.created) * 1000)
    return summary(times)


def report(bench: Bench, measured: list[Imported], empty: dict[str, float]) -> None:
    total = summary([one.total_ms for one in measured])
    start = summary([one.start_ms for one in measured])
    bench.report(
        "10-row import, POST to succeeded",
        **total,
        target_p50_ms=P50_TARGET_MS,
        target_p95_ms=P95_TARGET_MS,
        yardstick_empty_run=empty,
        met=total["p50_ms"] <= P50_TARGET_MS and total["p95_ms"] <= P95_TARGET_MS,
    )
    bench.report(
        "10-row import, submit to run start",
        **start,
        target_p95_ms=START_TARGET_MS,
        met=start["p95_ms"] <= START_TARGET_MS,
    )
    bench.report("10-row import, the POST alone", **summary([one.post_ms for one in measured]))
    bench.report(
        "10-row import, submit to the run's record in Dagster", **summary([one.launch_ms for one in measured])
    )
