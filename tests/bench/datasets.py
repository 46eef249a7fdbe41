"""Lists of a large registry of datasets, saves of large drafts, files beside the same import into a sheet.

The yardstick of lists is the bare route of the ingest benchmark, that of files the import into a sheet.
"""

import base64
import random
import time
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import httpx2

from storage.engine.registry_schema import dataset_groups, datasets
from storage.settings import Settings
from storage.store import Store, opened
from storage.workspaces import bootstrap
from tests.bench.bare import bare_server
from tests.bench.folders import timed
from tests.bench.material import log_body
from tests.bench.measure import Bench, summary
from tests.bench.service import KEY, Service, running

PAGE_TARGET_MS, SAVE_TARGET_S, FILE_TARGET = 50.0, 1.0, 1.2
_V2 = "/api/public/v2"
_SORTS = ("created_at", "updated_at", "name", "id")
_PER_GROUP = 10
_FILTERS = {
    "no filter": "",
    "a part of the name": "&name=set 1",
    "by times, all states": "&created_after=2000-01-01&updated_before=2100-01-01&status=all",
}


def run(bench: Bench) -> None:
    home = bench.folder / "home"
    count = bench.sized(100_000, 2_000)
    seed(home, count)
    with running(home) as service:
        report_pages(bench, service, count)
        report_files(bench, service)
        report_runs(bench, service)
    with bare_server() as url, httpx2.Client(timeout=10) as client:
        body = log_body()
        bare = timed(lambda _: client.post(url, content=body), range(bench.sized(300, 20)))
    bench.report("yardstick: the bare route", **summary(bare))


def seed(home: Path, count: int) -> None:
    """Make versions in a home, ten a group."""
    rng = random.Random(7)
    with opened(Settings(home=home, api_key=KEY)) as store:
        bootstrap(store)
        with store.catalog.transaction() as connection:
            groups = [
                _row(store, rng, name=f"set {number}", user_id=1)
                for number in range(1, count // _PER_GROUP + 1)
            ]
            connection.execute(dataset_groups.insert(), groups)
            connection.execute(datasets.insert(), [_version(store, rng, number) for number in range(count)])


def _row(store: Store, rng: random.Random, **values: Any) -> dict[str, Any]:
    created = store.now() - timedelta(seconds=rng.randrange(10**7))
    return {"workspace_id": 1, "created_at": created, "updated_at": created} | values


def _version(store: Store, rng: random.Random, number: int) -> dict[str, Any]:
    group = number // _PER_GROUP + 1
    return _row(
        store,
        rng,
        dataset_group_id=group,
        version_number=number % _PER_GROUP + 1,
        name=f"set {group}",
        column_names=["question", "answer"],
        row_count=100,
        user_id=1,
    )


def report_pages(bench: Bench, service: Service, count: int) -> None:
    """Every order: first, middle and last pages of 100."""
    last = count // 100
    for told, query in _FILTERS.items():
        where = product(_SORTS, ("asc", "desc"), (1, last // 2, last))
        pages = [
            f"{_V2}/datasets?per_page=100&sort_by={sort}&sort_order={order}&page={page}{query}"
            for sort, order, page in where
        ]
        timed(service.get, pages)
        figures = summary(timed(service.get, pages * bench.sized(5, 1)))
        bench.report(
            f"a page of {count} datasets, {told}",
            **figures,
            target_p95_ms=PAGE_TARGET_MS,
            met=figures["p95_ms"] <= PAGE_TARGET_MS,
        )


def report_files(bench: Bench, service: Service) -> None:
    """A file into a dataset and into a sheet, by turns; then a draft of it, saved."""
    rows = bench.sized(1_000_000, 20_000)
    words = "words that make a row as long as those of a file of 100 MB with a million rows are"
    content = "id,text,score\n" + "".join(f"{n},{words} {n},{n % 97}\n" for n in range(rows))
    table = service.post(f"{_V2}/tables", {})["table"]["id"]
    group = service.post(f"{_V2}/dataset-groups", {"name": "bench"})["dataset_group"]["id"]
    file = {"file_name": "bench.csv", "file_content_base64": _base64(content)}
    into_sheet, into_dataset = [], []
    dataset = 0
    for _ in range(bench.sized(3, 1)):
        started = time.perf_counter()
        made = service.post(f"{_V2}/tables/{table}/sheets", {"source": {"type": "file", **file}}, status=202)
        poll = f"{_V2}/tables/{table}/sheets/operations/{made['operation_id']}"
        while service.get(poll)["operation"]["status"] != "succeeded":
            time.sleep(0.02)
        into_sheet.append(time.perf_counter() - started)
        started = time.perf_counter()
        dataset = service.post(f"{_V2}/dataset-versions/from-file", {"dataset_group_id": group, **file})[
            "dataset_id"
        ]
        _until_version(service, dataset)
        into_dataset.append(time.perf_counter() - started)
    ratio = min(into_dataset) / min(into_sheet)
    bench.report(
        f"a file of {len(content) / 1e6:.0f} MB as a dataset",
        seconds=round(min(into_dataset), 2),
        into_a_sheet_seconds=round(min(into_sheet), 2),
        target_ratio=FILE_TARGET,
        ratio=round(ratio, 2),
        met=ratio <= FILE_TARGET,
    )
    body = {"dataset_group_id": group}
    draft = service.post(
        f"{_V2}/dataset-versions/create-draft", {**body, "source_dataset_id": dataset}, status=202
    )
    while service.get(f"{_V2}/datasets/{draft['draft_dataset_id']}")["dataset"]["draft_state"] != "open":
        time.sleep(0.02)
    started = time.perf_counter()
    service.post(f"{_V2}/dataset-versions/save-draft", body, status=202)
    _until_version(service, draft["draft_dataset_id"])
    seconds = time.perf_counter() - started
    bench.report(
        f"a draft of {rows} rows saved, from the call to the version",
        seconds=round(seconds, 3),
        target_s=SAVE_TARGET_S,
        met=seconds <= SAVE_TARGET_S,
    )


def report_runs(bench: Bench, service: Service) -> None:
    """A report over 10,000 rows, and its columns in a sheet of as many others: neither meets the cache."""
    rows = bench.sized(10_000, 500)
    columns = [
        {"title": "length", "type": "code", "config": {"code": "return len(data['text'])"}},
        {"title": "same", "type": "comparison", "config": {"sources": ["text", "other"]}},
    ]

    def file(salt: str) -> dict[str, str]:
        content = "text,other\n" + "".join(f"{salt} {n},{salt} {n % 7}\n" for n in range(rows))
        return {"file_name": "bench.csv", "file_content_base64": _base64(content)}

    table = service.post(f"{_V2}/tables", {})["table"]["id"]
    sheets = f"{_V2}/tables/{table}/sheets"
    group = service.post(f"{_V2}/dataset-groups", {"name": "reported"})["dataset_group"]["id"]
    body = {"dataset_group_id": group}
    report = service.post("/reports", {**body, "name": "bench", "columns": columns})["report"]["id"]
    in_sheet, in_report = [], []
    for turn in range(bench.sized(3, 1)):
        made = service.post(sheets, {"source": {"type": "file", **file(f"s{turn}")}}, status=202)
        while (
            service.get(f"{sheets}/operations/{made['operation_id']}")["operation"]["status"] != "succeeded"
        ):
            time.sleep(0.02)
        sheet = f"{sheets}/{made['sheet']['id']}"
        dataset = service.post(f"{_V2}/dataset-versions/from-file", {**body, **file(f"d{turn}")})
        _until_version(service, dataset["dataset_id"])
        started = time.perf_counter()
        for column in columns:
            service.post(f"{sheet}/columns", column)
        while service.get(f"{sheet}/status-counts")["status_counts"] != {"completed": 4 * rows}:
            time.sleep(0.02)
        in_sheet.append(time.perf_counter() - started)
        started = time.perf_counter()
        run_id = service.post(f"/reports/{report}/run", {"name": f"run {turn}"})["report_id"]
        while service.get(f"/reports/{run_id}")["report"]["status"] != "completed":
            time.sleep(0.02)
        in_report.append(time.perf_counter() - started)
    ratio = min(in_report) / min(in_sheet)
    bench.report(
        f"a report of two columns over {rows} rows",
        seconds=round(min(in_report), 2),
        in_a_sheet_seconds=round(min(in_sheet), 2),
        target_ratio=FILE_TARGET,
        ratio=round(ratio, 2),
        met=ratio <= FILE_TARGET,
    )


def _until_version(service: Service, dataset: int) -> None:
    while service.get(f"{_V2}/datasets/{dataset}")["dataset"]["version_number"] < 0:
        time.sleep(0.02)


def _base64(content: str) -> str:
    return base64.b64encode(content.encode()).decode()
