"""An import's run: progress, cancellation, a full disk at every step, and what is left of it."""

import csv
import io
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from pipelines.imports import Refused, run_import
from pipelines.work import Outcome, run_operation
from storage.domain.errors import Unavailable
from storage.domain.imports import NewSheet, Started
from storage.domain.keys import Principal
from storage.domain.operations import IMPORT_FILE, Operation
from storage.domain.paging import PageRequest
from storage.engine.segment_sink import SegmentSink
from storage.operations import ClaimRefused, fail, get_operation, raise_attempt
from storage.rows import list_rows
from storage.settings import Settings
from storage.store import Store, open_store
from storage.tables import create_table
from storage.uploads import Incoming, start_upload_import
from storage.verification import verify_sheet
from storage.workspaces import bootstrap, find_key
from tests.conftest import KEY

LINES = b"a,b\n" + b"".join(b"%d,x%d\n" % (n, n) for n in range(50_000))


def start(store: Store, who: Principal, content: bytes, name: str = "x.csv") -> Started:
    incoming = Incoming(store)
    try:
        incoming.write(content)
        upload = incoming.park()
    except Unavailable:
        incoming.discard()
        raise
    return start_upload_import(
        store,
        who,
        table_id=create_table(store, who).id,
        target=NewSheet("x"),
        file_name=name,
        upload=upload,
        operation_id=None,
        request_hash="0",
    )


def run(store: Store, operation: Operation, reports: list[str] | None = None) -> Outcome:
    told: list[str] = [] if reports is None else reports
    work = {IMPORT_FILE: run_import}
    return run_operation(
        work, store, operation.no, operation.attempt, f"run-{operation.attempt}", told.append
    )


def values(store: Store, who: Principal, started: Started, count: int = 1000) -> list[list[Any]]:
    sheet = started.sheet
    request = PageRequest(min(count, 1000), "asc", None)
    page = list_rows(store, who, table_id=sheet.table_id, sheet_id=sheet.id, request=request)
    return [[cell.value for cell in row.cells] for row in page.page.items]


def data_files(store: Store) -> list[str]:
    root = store.data.path("")
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_the_outcome_tells_counts_and_schema(store: Store, who: Principal) -> None:
    started = start(store, who, b'[{"a": 1, "b": "x"}, {"a": 2}]', "x.json")
    reports: list[str] = []
    outcome = run(store, started.operation, reports)
    assert outcome.facts == {"rows": 2, "bytes": outcome.facts["bytes"], "columns": 2, "version": 2}
    assert outcome.schema == {"a": "integer", "b": "text"}
    assert reports == [
        f"Importing into sheet {started.sheet.id}, attempt 1.",
        f"Committed 2 rows, {outcome.facts['bytes']} bytes, 2 columns, 2 version.",
    ]


@pytest.mark.parametrize("content", [b"a,b", b"a,b\n", b"a,b\n\n\r\n\n"])
def test_a_header_alone_makes_columns_without_rows(store: Store, who: Principal, content: bytes) -> None:
    started = start(store, who, content)
    assert run(store, started.operation).facts["columns"] == 2
    assert values(store, who, started) == []
    assert list(store.data.path(f"sheets/{started.sheet.id}").glob("*")) == []


def test_progress_rises_and_is_told_at_most_twice_a_second(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, str]] = []
    clock = iter(n * 0.2 for n in range(1_000_000))
    monkeypatch.setattr("pipelines.imports.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("storage.engine.csv_import.BLOCK_BYTES", 10_000)

    def progress(_store: Store, _operation: Operation, percent: int, message: str) -> bool:
        told.append((percent, message))
        return True

    monkeypatch.setattr("pipelines.imports.set_progress", progress)
    run(store, start(store, who, LINES).operation)
    percents = [percent for percent, _ in told]
    pieces = len(LINES) // 10_000
    assert pieces // 4 < len(told) <= pieces // 3 + 1
    assert percents == sorted(percents)
    assert percents[-1] <= 95
    assert told[0][1].endswith(" rows read")


@pytest.mark.parametrize("columns", [2, 70])
def test_a_large_file_is_written_in_stretches_and_reads_as_one(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setattr("storage.engine.csv_stretches.MIN_STRETCH_BYTES", 50_000)
    monkeypatch.setattr("storage.engine.csv_stretches._cores", lambda: 3)
    monkeypatch.setattr("storage.engine.csv_import.BLOCK_BYTES", 20_000)
    rows = [[f"{row},{column}" for column in range(columns)] for row in range(40_000 // columns)]
    text = io.StringIO()
    csv.writer(text).writerows([[f"t{column}" for column in range(columns)], *rows])
    started = start(store, who, text.getvalue().encode())
    assert run(store, started.operation).facts["rows"] == len(rows)
    files = list(store.data.path(f"sheets/{started.sheet.id}").iterdir())
    assert len(files) == 3 * -(-columns // 64)
    assert verify_sheet(store, started.sheet.no) == []
    request = PageRequest(1000, "asc", None)
    found: list[list[Any]] = []
    while True:
        page = list_rows(
            store, who, table_id=started.sheet.table_id, sheet_id=started.sheet.id, request=request
        ).page
        found += [[cell.value for cell in row.cells] for row in page.items]
        if page.next_cursor is None:
            break
        request = PageRequest(1000, "asc", page.next_cursor)
    assert found == rows


def test_a_cancelled_import_stops_and_adds_nothing(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.imports.PROGRESS_EVERY_S", 0)
    monkeypatch.setattr("storage.engine.csv_import.BLOCK_BYTES", 10_000)
    started = start(store, who, LINES)
    blocks = 0

    def cancel_after_three(*_: Any) -> None:
        nonlocal blocks
        blocks += 1
        if blocks == 3:
            fail(store, started.operation.no, 1, "cancelled")

    count_calls(monkeypatch, cancel_after_three)
    before = data_files(store)
    with pytest.raises(ClaimRefused):
        run(store, started.operation)
    assert blocks == 3
    assert data_files(store) == before
    assert get_operation(store, started.operation.no).error_message == "cancelled"
    assert values(store, who, started) == []


def count_calls(monkeypatch: pytest.MonkeyPatch, before: Callable[..., Any]) -> None:
    write = SegmentSink.write

    def counted(self: SegmentSink, *args: Any) -> None:
        before()
        write(self, *args)

    monkeypatch.setattr(SegmentSink, "write", counted)


def test_an_import_cancelled_before_its_commit_leaves_no_segment(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = start(store, who, LINES)
    before = data_files(store)
    count_calls(monkeypatch, lambda: fail(store, started.operation.no, 1, "cancelled"))
    with pytest.raises(ClaimRefused):
        run(store, started.operation)
    assert data_files(store) == before


def test_a_swept_upload_fails_the_operation_with_a_sentence(store: Store, who: Principal) -> None:
    started = start(store, who, LINES)
    (upload,) = store.data.path("spool").iterdir()
    upload.unlink()
    with pytest.raises(Refused):
        run(store, started.operation)
    message = get_operation(store, started.operation.no).error_message
    assert message == "The uploaded file is gone: files are kept 7 days"


def test_an_attempt_after_a_failure_imports_the_same_upload(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = start(store, who, b"a\n1\n")
    raise_attempt(store, started.operation.no, 1)
    with pytest.raises(ClaimRefused):
        run(store, started.operation)
    run(store, get_operation(store, started.operation.no))
    assert values(store, who, started) == [["1"]]


def test_a_value_of_another_type_and_a_late_key_begin_new_segments_and_every_value_comes_back(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.engine.json_import._BATCH_ROWS", 2)
    rows: list[dict[str, Any]] = [
        {"a": None, "b": True},
        {"a": None},
        {"a": 1},
        {"a": 2**63},
        {"a": 1.5, "late": "x"},
        {"a": [None, {"k": "é"}], "b": "no"},
        {"a": "text", "late": None},
    ]
    started = start(store, who, json.dumps(rows).encode(), "x.json")
    outcome = run(store, started.operation)
    wanted = [[row.get(title) for title in ("a", "b", "late")] for row in rows]
    assert json.dumps(values(store, who, started)) == json.dumps(wanted)
    assert outcome.schema == {"a": "text | json", "b": "boolean | json", "late": "text"}


@pytest.mark.parametrize("columns", [1, 64, 65, 999])
def test_wide_files_become_segments_of_64_columns(store: Store, who: Principal, columns: int) -> None:
    text = io.StringIO()
    rows = [[f"{row}.{column}" for column in range(columns)] for row in range(3)]
    csv.writer(text).writerows([[f"t{column}" for column in range(columns)], *rows])
    before = data_files(store)
    started = start(store, who, text.getvalue().encode())
    run(store, started.operation)
    assert values(store, who, started) == rows
    segments = [name for name in data_files(store) if name.endswith(".parquet") and name not in before]
    assert len(segments) == -(-columns // 64)


def test_rows_with_long_values_are_written_in_small_groups(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.engine.csv_stretches._cores", lambda: 1)
    long = "x" * 1_000_000
    started = start(store, who, ("a\n" + f"{long}\n" * 80).encode())
    run(store, started.operation)
    (name,) = [name for name in data_files(store) if name.endswith(".parquet")]
    groups = pq.read_metadata(store.data.path(name))
    sizes = [groups.row_group(at).num_rows for at in range(groups.num_row_groups)]
    assert sum(sizes) == 80
    assert max(sizes) <= 40
    assert values(store, who, started, 3) == [[long]] * 3


def enospc(*_args: object, **_options: object) -> None:
    raise OSError(28, "No space left on device")


STEPS: dict[str, tuple[object, str]] = {
    "segment opened": ("storage.engine.segment_sink.pq", "ParquetWriter"),
    "row group written": (pq.ParquetWriter, "write_table"),
    "footer written": (pq.ParquetWriter, "close"),
    "segment synced": ("storage.engine.data_root", "sync_file"),
    "segment renamed": (Path, "rename"),
    "folder synced": ("storage.engine.data_root", "sync_folder"),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", ["x.csv", "x.json"])
def test_a_full_disk_fails_the_import_and_the_same_upload_succeeds_later(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch, step: str, name: str
) -> None:
    content = LINES if name == "x.csv" else json.dumps([{"a": n} for n in range(20_000)]).encode()
    started = start(store, who, content, name)
    before = data_files(store)
    owner, attribute = STEPS[step]
    with monkeypatch.context() as full:
        if isinstance(owner, str):
            full.setattr(f"{owner}.{attribute}", enospc)
        else:
            full.setattr(owner, attribute, enospc)
        with pytest.raises(Unavailable):
            run(store, started.operation)
    assert data_files(store) == before
    operation = get_operation(store, started.operation.no)
    assert (operation.status, operation.rows_added) == ("failed", 0)
    assert "disk full" in (operation.error_message or "")
    assert values(store, who, started) == []
    again = start(store, who, content, name)
    run(store, again.operation)
    assert len(values(store, who, again)) == 1000


def test_a_catalog_that_cannot_grow_fails_the_import_and_publishes_nothing(
    store: Store, who: Principal
) -> None:
    titles = [f"title number {n} that needs some room in the catalog" for n in range(400)]
    text = io.StringIO()
    csv.writer(text).writerows([titles, ["x"] * 400])
    started = start(store, who, text.getvalue().encode())
    with no_more_pages(store), pytest.raises(Unavailable, match="disk full"):
        run(store, started.operation)
    operation = get_operation(store, started.operation.no)
    assert (operation.status, operation.rows_added) == ("failed", 0)
    assert values(store, who, started) == []
    again = start(store, who, text.getvalue().encode())
    run(store, again.operation)
    assert values(store, who, again) == [["x"] * 400]


class no_more_pages:  # noqa: N801
    """Keep a catalog from growing, as a full disk does."""

    def __init__(self, store: Store) -> None:
        self._engine = store.catalog.engine

    def __enter__(self) -> None:
        self._engine.dispose()
        sa.event.listen(self._engine, "connect", self._limit)

    def __exit__(self, *_: object) -> None:
        sa.event.remove(self._engine, "connect", self._limit)
        self._engine.dispose()

    @staticmethod
    def _limit(connection: Any, _record: Any) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 6 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", disk], check=False)
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.mark.slow
def test_a_disk_that_is_really_full(tiny_disk: Path, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", api_key=KEY, data_url=tiny_disk.as_uri())
    store = open_store(settings)
    bootstrap(store)
    facts = find_key(store, KEY)
    assert facts is not None
    who = facts.principal
    filler = tiny_disk / "filler"
    random = "".join(f"{n * 7919 % 100_003}-{n * 104_729 % 1_000_003},{n}\n" for n in range(100_000))
    content = ("a,b\n" + random).encode()
    started = start(store, who, content)
    filler.write_bytes(bytes(store.data.free_bytes() - 200_000))
    before = data_files(store)
    with pytest.raises(Unavailable):
        run(store, started.operation)
    assert data_files(store) == before
    with pytest.raises(Unavailable):
        start(store, who, content)
    assert data_files(store) == before
    filler.unlink()
    again = start(store, who, content)
    run(store, again.operation)
    assert get_operation(store, again.operation.no).rows_added == 100_000
    store.close()


def test_work_that_breaks_is_told_to_client_and_log_unless_it_had_ended(
    store: Store, who: Principal, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(store: Store, no: int, attempt: int, run_id: str, report: object) -> Outcome:
        raise RuntimeError("interrupted")

    for message in (None, "sheet deleted"):
        operation = start(store, who, b"a\n1\n").operation
        if message:
            fail(store, operation.no, operation.attempt, message)
        caplog.clear()
        with pytest.raises(RuntimeError):
            run_operation(
                {IMPORT_FILE: breaks}, store, operation.no, operation.attempt, "run-1", lambda _: None
            )
        assert len(caplog.records) == (0 if message else 1)
        told = get_operation(store, operation.no).error_message
        assert told == (message or "Internal error (RuntimeError) in run run-1.")
