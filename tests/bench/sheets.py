"""Reading and writing a long sheet and a wide one: a cell, pages, edits, versions, restores."""

import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from tests.bench.imports import wait as wait_import
from tests.bench.material import file_source
from tests.bench.measure import Bench, summary
from tests.bench.service import Service, running

_TABLES = "/api/public/v2/tables"
_WIDE = 999


def run(bench: Bench) -> None:
    rows, wide_rows = bench.sized(1_000_000, 20_000), bench.sized(10_000, 500)
    n = bench.sized(50, 10)
    with running(bench.folder / "home") as service:
        long_text, wide_text = _csv(rows, 10), _csv(wide_rows, _WIDE)
        table = service.post(_TABLES, {"title": "bench"})["table"]["id"]
        long_sheet, wide_sheet = _sheet(service, table, long_text), _sheet(service, table, wide_text)
        ping = summary(_times(lambda: service.get("/health"), n))
        bare = _bare_page_ms(bench.folder, long_text, rows)
        _long(bench, service, long_sheet, rows, n, {"yardstick_health": ping, "yardstick_bare_page_ms": bare})
        _versions(bench, service, long_sheet, n, {"yardstick_health": ping})
        _wide(
            bench,
            service,
            wide_sheet,
            n,
            {"yardstick_bare_page_ms": _bare_page_ms(bench.folder, wide_text, wide_rows)},
        )
        _many_sheets(bench, service, ping)


def _csv(rows: int, columns: int) -> bytes:
    titles = ",".join(f"T{at}" for at in range(columns))
    tail = "".join(f",v{at}" for at in range(2, columns))
    lines = (f"row {n},{n * 31 % 977}{tail}\n" for n in range(rows))
    return f"{titles}\n{''.join(lines)}".encode()


def _sheet(service: Service, table: str, text: bytes) -> str:
    made = service.post(f"{_TABLES}/{table}/sheets", file_source("sheet.csv", text), status=202)
    wait_import(service, table, made["operation_id"])
    return f"{_TABLES}/{table}/sheets/{made['sheet']['id']}"


def _times(call: Callable[[], Any], n: int) -> list[float]:
    """Return the milliseconds of n calls, after one that is not counted."""
    call()
    found = []
    for _ in range(n):
        begun = time.perf_counter()
        call()
        found.append((time.perf_counter() - begun) * 1000)
    return found


def _tell(
    bench: Bench, what: str, call: Callable[[], Any], n: int, target_ms: float, more: dict[str, Any]
) -> None:
    figures = summary(_times(call, n))
    bench.report(what, **figures, target_p50_ms=target_ms, **more, met=figures["p50_ms"] <= target_ms)


def _long(bench: Bench, service: Service, sheet: str, rows: int, n: int, yardsticks: dict[str, Any]) -> None:
    chance = random.Random(7)
    cells = [
        cell["id"]
        for at in range(5)
        for row in service.get(f"{sheet}/rows?limit=10&order={'desc' if at % 2 else 'asc'}")["data"]
        for cell in row["cells"].values()
    ]
    _tell(
        bench,
        f"one cell of {rows} x 10",
        lambda: service.get(f"{sheet}/cells/{chance.choice(cells)}"),
        n,
        10,
        yardsticks,
    )
    cursors: list[str] = ["asc", "desc"]
    _tell(
        bench,
        "a page of 100 rows",
        lambda: service.get(f"{sheet}/rows?limit=100&order={chance.choice(cursors)}"),
        n,
        40,
        yardsticks,
    )
    edits = iter(range(10**9))

    def edit() -> None:
        body = {"value": f"edit {next(edits)}"}
        service.client.patch(f"{sheet}/cells/{chance.choice(cells)}", json=body).raise_for_status()

    _tell(bench, "one cell edited", edit, n, 20, yardsticks)


def _versions(bench: Bench, service: Service, sheet: str, n: int, yardsticks: dict[str, Any]) -> None:
    names = iter(range(10**9))
    path = f"{sheet}/versions"
    _tell(
        bench,
        "a version saved",
        lambda: service.post(path, {"name": f"v{next(names)}"}),
        n,
        30,
        yardsticks,
    )
    source = service.get(f"{path}?order=asc")["data"][1]["id"]
    _tell(
        bench,
        "a version restored",
        lambda: service.post(path, {"source_version_id": source}),
        n,
        50,
        yardsticks,
    )
    for _ in range(bench.sized(1_000, 50) - 2 * n):
        service.post(path, {"name": f"v{next(names)}"})
    count = service.get(sheet)["sheet"]["version_count"]
    _tell(bench, f"20 of {count} versions listed", lambda: service.get(path), n, 30, yardsticks)


def _wide(bench: Bench, service: Service, sheet: str, n: int, yardsticks: dict[str, Any]) -> None:
    first = service.get(f"{sheet}/rows?limit=1")
    columns = [column["id"] for column in first["columns"]]
    cell = first["data"][0]["cells"][columns[500]]["id"]
    named = ",".join(random.Random(7).sample(columns, 50))
    _tell(
        bench, f"one cell of {_WIDE} columns", lambda: service.get(f"{sheet}/cells/{cell}"), n, 20, yardsticks
    )
    _tell(
        bench,
        "100 rows x 50 named columns",
        lambda: service.get(f"{sheet}/rows?limit=100&column_ids={named}"),
        n,
        80,
        yardsticks,
    )
    whole = f"{sheet}/rows?limit=100"
    _tell(bench, f"100 rows x {_WIDE} columns", lambda: service.client.get(whole), n // 5, 2_000, yardsticks)


def _many_sheets(bench: Bench, service: Service, ping: dict[str, float]) -> None:
    """Make tables and sheets, and compare what a call takes with few and with many of them."""
    table = service.post(_TABLES, {"title": "many"})["table"]["id"]
    path = f"{_TABLES}/{table}/sheets"
    many = bench.sized(10_000, 200)

    def make() -> Any:
        return service.post(path, {"title": "one of many"})

    few = statistics.median(_times(make, 20)), statistics.median(_times(lambda: service.get(path), 20))
    for _ in range(many - 60):
        make()
    after = statistics.median(_times(make, 20)), statistics.median(_times(lambda: service.get(path), 20))
    for what, one, other in zip(("create", "list"), few, after, strict=True):
        bench.report(
            f"{what} a sheet among {many}",
            p50_ms=round(other, 2),
            among_few_p50_ms=round(one, 2),
            ratio=round(other / one, 2),
            yardstick_health=ping,
            met=other <= 2 * one,
        )


def _bare_page_ms(folder: Path, text: bytes, rows: int) -> dict[str, float]:
    """Return what polars and duckdb take for 100 rows of the same content in one Parquet file."""
    path = folder / "bare.parquet"
    pl.read_csv(text, infer_schema=False).write_parquet(path, row_group_size=4_096)
    middle = rows // 2
    query = f"SELECT * FROM read_parquet('{path}') LIMIT 100 OFFSET {middle}"
    with duckdb.connect() as connection:
        by_duckdb = _times(lambda: connection.execute(query).fetchall(), 5)
    by_polars = _times(lambda: pl.scan_parquet(path).slice(middle, 100).collect().rows(), 5)
    return {
        "polars": round(statistics.median(by_polars), 2),
        "duckdb": round(statistics.median(by_duckdb), 2),
    }
