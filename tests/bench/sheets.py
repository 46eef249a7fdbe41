"""Reading and writing a long sheet and a wide one: a cell, pages, edits, versions, restores."""

import random
import statistics
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import polars as pl

from storage.engine.rows.sheets import find_sheet_by_no, find_sheet_no
from storage.settings import Settings
from storage.store import opened
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
        _versions_of_columns(bench, service, long_sheet, rows)
        _wide_import(bench, service, table, wide_rows, n)
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
    spread = round(figures["p95_ms"] / figures["p50_ms"], 2)
    bench.report(
        what,
        **figures,
        target_p50_ms=target_ms,
        p95_of_p50=spread,
        target_p95_of_p50=3,
        **more,
        met=figures["p50_ms"] <= target_ms and spread <= 3,
    )


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


def _versions_of_columns(bench: Bench, service: Service, sheet: str, rows: int) -> None:
    """Save versions of one new column each, and compare what they take on disk with the columns alone."""
    count = bench.sized(50, 5)
    home = bench.folder / "home"
    before = _bytes_of(home / "data"), _bytes_of(home, "catalog.sqlite3*")
    named = _bytes_named(home, sheet.rpartition("/")[2])
    waits = []
    for at in range(count):
        config = {"operation": "concat", "sources": ["T0", f"T{1 + at % 9}"], "separator": str(at)}
        body = {"title": f"new {at}", "type": "composition", "config": config}
        begun = time.perf_counter()
        made = service.post(f"{sheet}/columns", body)
        waits.append((time.perf_counter() - begun) * 1000)
        poll = f"{sheet}/operations/{made['operation_id']}"
        while service.get(poll)["operation"]["status"] != "completed":
            time.sleep(0.05)
        service.post(f"{sheet}/versions", {"name": f"with {at}"})
    data, catalog = _bytes_of(home / "data") - before[0], _bytes_of(home, "catalog.sqlite3*") - before[1]
    alone = _bytes_named(home, sheet.rpartition("/")[2]) - named
    ratio = round((data + catalog) / alone, 3)
    bench.report(
        f"{count} versions, each one new column over {rows} rows",
        data_mb=round(data / 1e6, 1),
        catalog_mb=round(catalog / 1e6, 1),
        yardstick_columns_alone_mb=round(alone / 1e6, 1),
        ratio=ratio,
        target_ratio=1.2,
        add_column_p50_ms=round(statistics.median(waits), 1),
        target_add_column_p50_ms=100,
        met=ratio <= 1.2 and statistics.median(waits) <= 100,
    )


def _bytes_named(home: Path, sheet_id: str) -> int:
    """Return the bytes of the files that the sheet, as it is now, is made of: each column once."""
    with opened(Settings(home=home)) as store, store.catalog.read() as connection:
        sheet_no = find_sheet_no(connection, UUID(sheet_id))
        sheet = None if sheet_no is None else find_sheet_by_no(connection, sheet_no)
        if sheet is None:
            raise LookupError(f"no sheet {sheet_id}")
        named = store.snapshots.get(connection, sheet.head_no).manifest.segments()
        return sum(store.data.path(key).stat().st_size for key in named)


def _bytes_of(folder: Path, names: str = "**/*") -> int:
    return sum(path.stat().st_size for path in folder.glob(names) if path.is_file())


def _wide_import(bench: Bench, service: Service, table: str, wide_rows: int, n: int) -> None:
    """Import the same values as 999 columns and as 10, by turns, and read single cells of both."""
    rows = wide_rows * _WIDE // 10
    files = {
        "wide": _laid(wide_rows, _WIDE),
        "narrow": _laid(rows, 10),
    }
    took: dict[str, list[float]] = {name: [] for name in files}
    cells: dict[str, float] = {}
    for _ in range(bench.sized(3, 1)):
        for name, text in files.items():
            begun = time.perf_counter()
            sheet = _sheet(service, table, text)
            took[name].append(time.perf_counter() - begun)
            first = service.get(f"{sheet}/rows?limit=1")
            cell = list(first["data"][0]["cells"].values())[5]["id"]
            cells[name] = statistics.median(_times(lambda: service.get(f"{sheet}/cells/{cell}"), n))  # noqa: B023
    for what, wide, narrow, target in (
        ("import_s", min(took["wide"]), min(took["narrow"]), 3),
        ("cell_ms", cells["wide"], cells["narrow"], 2),
    ):
        bench.report(
            f"{_WIDE} x {wide_rows} beside the same {len(files['wide']) / 1e6:.0f} MB in 10 columns: {what}",
            wide=round(wide, 3),
            yardstick_10_columns=round(narrow, 3),
            ratio=round(wide / narrow, 2),
            target_ratio=target,
            met=wide <= target * narrow,
        )


def _laid(rows: int, columns: int) -> bytes:
    """Return a file of values that are alike however many columns they are laid in."""
    titles = ",".join(f"T{at}" for at in range(columns))
    values = (f"v{n * 31 % 977}" for n in range(rows * columns))
    lines = (",".join(islice(values, columns)) for _ in range(rows))
    return "\n".join((titles, *lines, "")).encode()


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
