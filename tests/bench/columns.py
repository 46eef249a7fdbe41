"""Computed columns on a large sheet: added, computed, found unchanged, and after the edit of one cell."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from tests.bench.imports import wait as wait_import
from tests.bench.material import file_source
from tests.bench.measure import Bench, summary
from tests.bench.service import Service, running

_TABLES = "/api/public/v2/tables"
ADD_MS, UNCHANGED_MS, EDIT_MS, ROWS_A_SECOND = 100, 200, 500, 500_000
_POLL_S = 0.01


def run(bench: Bench) -> None:
    rows = bench.sized(1_000_000, 20_000)
    text = _csv(rows)
    with running(bench.folder / "home") as service:
        sheet = _sheet(service, text)
        ping = summary([_timed(lambda: service.get("/health"))[0] for _ in range(50)])
        added = [_add(service, sheet, f"Try {at}", "A", "B") for at in range(bench.sized(10, 3))]
        add = summary([one.ms for one in added])
        bench.report(
            f"a computed column added to {rows} rows",
            **add,
            target_p50_ms=ADD_MS,
            yardstick_health=ping,
            met=add["p50_ms"] <= ADD_MS,
        )
        for one in added:
            # recalculations of a sheet run one after the other: the one that is timed must not wait for these
            _wait(service, sheet, one.operation_id)
        bare = _bare(bench.folder, text)
        begun = time.perf_counter()
        _wait(service, sheet, _add(service, sheet, "Same", "A", "B").operation_id)
        seconds = time.perf_counter() - begun
        bench.report(
            "comparison, POST to completed",
            rows_a_second=round(rows / seconds),
            target_rows_a_second=ROWS_A_SECOND,
            yardstick_polars_rows_a_second=round(rows / bare),
            met=rows / seconds >= ROWS_A_SECOND,
        )
        for title, source in (("Two", "Same"), ("Three", "Two")):
            _wait(service, sheet, _add(service, sheet, title, source).operation_id)
        _report_runs(bench, service, sheet)


class _Added:
    def __init__(self, ms: float, operation_id: str) -> None:
        self.ms, self.operation_id = ms, operation_id


def _csv(rows: int) -> bytes:
    tail = ",".join("abcdefgh")
    lines = (f"value {n},{'value ' if n % 10 else 'x'}{n},{tail}\n" for n in range(rows))
    return ("A,B,C,D,E,F,G,H,I,J\n" + "".join(lines)).encode()


def _sheet(service: Service, text: bytes) -> str:
    table = service.post(_TABLES, {"title": "bench"})["table"]["id"]
    made = service.post(f"{_TABLES}/{table}/sheets", file_source("large.csv", text), status=202)
    wait_import(service, table, made["operation_id"])
    return f"{_TABLES}/{table}/sheets/{made['sheet']['id']}"


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    answer = call()
    return (time.perf_counter() - begun) * 1000, answer


def _add(service: Service, sheet: str, title: str, *sources: str) -> _Added:
    """Add a comparison of two columns, or of one with a text."""
    config: dict[str, Any] = {"sources": list(sources)}
    if len(sources) == 1:
        config["target"] = "true"
    body = {"title": title, "type": "comparison", "config": config}
    ms, answer = _timed(lambda: service.post(f"{sheet}/columns", body))
    return _Added(ms, answer["operation_id"])


def _wait(service: Service, sheet: str, operation_id: str) -> None:
    """Wait until a recalculation has completed.

    Raises:
        RuntimeError: it ended otherwise.
    """
    while True:
        status = service.get(f"{sheet}/operations/{operation_id}")["operation"]["status"]
        if status == "completed":
            return
        if status in {"failed", "cancelled"}:
            raise RuntimeError(f"the recalculation is {status}")
        time.sleep(_POLL_S)


def _report_runs(bench: Bench, service: Service, sheet: str) -> None:
    def recalculate(**body: Any) -> None:
        answer = service.client.post(f"{sheet}/operations", json=body)
        operation = answer.raise_for_status().json()["operation"]
        if operation["status"] != "completed":
            _wait(service, sheet, operation["operation_id"])

    recalculate(statuses=[])
    unchanged = summary([_timed(lambda: recalculate(statuses=[]))[0] for _ in range(bench.sized(10, 3))])
    bench.report(
        "every cell visited, nothing changed, POST to completed",
        **unchanged,
        target_p50_ms=UNCHANGED_MS,
        met=unchanged["p50_ms"] <= UNCHANGED_MS,
    )
    first = service.get(f"{sheet}/rows?limit=1")
    column = next(one["id"] for one in first["columns"] if one["title"] == "A")
    cell = first["data"][0]["cells"][column]["id"]

    def edit(value: str) -> None:
        service.client.patch(f"{sheet}/cells/{cell}", json={"value": value}).raise_for_status()
        recalculate()

    edits = summary([_timed(lambda at=at: edit(f"edit {at}"))[0] for at in range(bench.sized(10, 3))])
    bench.report(
        "one cell edited, 3 columns below it, PATCH to completed",
        **edits,
        target_p50_ms=EDIT_MS,
        met=edits["p50_ms"] <= EDIT_MS,
    )


def _bare(folder: Path, text: bytes) -> float:
    """Return the seconds that polars takes to compare two columns of a file into another."""
    source, result = folder / "bare.parquet", folder / "compared.parquet"
    pl.read_csv(text, infer_schema=False).write_parquet(source)
    begun = time.perf_counter()
    pl.read_parquet(source, columns=["A", "B"]).select(pl.col("A") == pl.col("B")).write_parquet(result)
    return time.perf_counter() - begun
