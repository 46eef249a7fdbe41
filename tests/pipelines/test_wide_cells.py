"""Sheets whose cells are texts of a length: a run holds few of them, however many it computes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from pipelines import column_run
from storage import recalculation_commit, recalculation_jobs, sandbox
from storage.domain.imports import Imported
from storage.domain.keys import Principal
from storage.domain.sheets import Sheet
from storage.engine import result_writer
from storage.engine.rows.recalculations import set_fingerprint
from storage.engine.sandbox import code
from storage.engine.segment_sink import SegmentSink
from storage.import_commit import commit_import
from storage.imports import get_import_target
from storage.operations import claim
from storage.settings import Settings
from storage.store import Store, opened
from storage.tables import create_table
from storage.verification import verify_sheet
from storage.workspaces import find_key
from tests.conftest import KEY
from tests.importing import start
from tests.recalculating import Bench, Counting

_MB = 1_000_000
_BATCH = 64
_TEMPLATE = {"content": [{"type": "text", "text": "{one} and {two}"}], "template_format": "f-string"}
_COLUMNS: dict[str, tuple[str, dict[str, Any]]] = {
    "comparison": ("comparison", {"sources": ["one", "two"]}),
    "score": ("score", {"sources": ["one", "two"], "metric": "exact_match"}),
    "concat": ("composition", {"operation": "concat", "sources": ["one", "two"]}),
    "read again": ("comparison", {"sources": ["concat", "one"]}),
    "prompt": (
        "prompt_template",
        {
            "inline_template": {"prompt_template": _TEMPLATE},
            "prompt_template_variable_mappings": {"one": "one", "two": "two"},
            "return_template_only": True,
        },
    ),
    "whole": ("code", {"code": "return data['one']"}),
    "made": ("code", {"code": "return 'long ' * 20_000 + data['one'][:9]"}),
    "SQL": ("code", {"language": "SQL", "code": "upper(one)"}),
    "asked": (
        "llm",
        {"prompt": "{one}", "engine": {"provider": "stub", "model": "first-word"}},
    ),
}
"""Columns that read long texts, write them, or both."""


def wide_sheet(store: Store, who: Principal, rows: int, cell_bytes: int) -> Sheet:
    """Import a sheet of two columns as a run does it, from few rows at a time."""
    operation = start(store, who, create_table(store, who).id).operation
    claimed = claim(store, operation.no, operation.attempt, "run-1")
    text = "wide text, " * (cell_bytes // 11 + 1)
    with SegmentSink(store.data, get_import_target(store, claimed).sheet_id, store.new_id) as sink:
        for first in range(0, rows, _BATCH):
            held = [f"{row} {text[:cell_bytes]}" for row in range(first, min(rows, first + _BATCH))]
            sink.write(len(held), [pa.array(held), pa.array(held[::-1])], ["text", "text"])
    return commit_import(store, claimed, Imported(("one", "two"), rows, tuple(sink.segments)))


def peak_mb() -> int:
    """The most memory that this program held: what the system counts by process holds its parent's, too."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024 // _MB


def peaks(home: str, table_id: str, sheet_id: str, sheet_no: int) -> None:
    """Compute each column in this process, and print the peak of its memory after each as JSON."""
    found = {}
    with opened(Settings(home=Path(home))) as store:
        facts = find_key(store, KEY)
        assert facts is not None
        sheet = Bench.of(store, facts.principal, UUID(table_id), UUID(sheet_id), sheet_no)
        for title, (kind, config) in _COLUMNS.items():
            operation = sheet.add(title, kind, **config).operation
            sheet.run(operation)
            done = sheet.poll(operation)
            assert (done.operation.status, done.failed_count) == ("completed", 0), (title, done)
            found[title] = peak_mb()
        # nothing is computed, all is read and hashed
        store_nothing_known(store, sheet)
        same = sheet.recalculate(statuses=())
        assert same.cached_count == same.cell_count
        found["found unchanged"] = peak_mb()
    print(json.dumps(found))


def store_nothing_known(store: Store, sheet: Bench) -> None:
    with store.catalog.transaction() as connection:
        for title in _COLUMNS:
            set_fingerprint(connection, sheet.column(title).no, "unknown")


def test_rows_computed_few_at_a_time_are_all_computed(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 90
    sheet = wide_sheet(store, who, rows, 40)
    for module, name, most in (
        (recalculation_jobs, "BLOCK_BYTES", 5_000),
        (column_run, "_RESULT_BYTES", 2_000),
        (recalculation_commit, "MOST_PATCHED_BYTES", 4_000),
        (result_writer, "_LONG_BYTES", 20),
        (result_writer, "_GROUP_BYTES", 300),
        (code, "_MOST_HELD_BYTES", 6_000),
        (sandbox, "_BATCH_ROWS", dict.fromkeys(("PYTHON", "JAVASCRIPT", "SQL"), 30)),
    ):
        monkeypatch.setattr(module, name, most)
    bench = Bench.of(store, who, sheet.table_id, sheet.id, sheet.no)
    counted = Counting()
    for title, (kind, config) in _COLUMNS.items():
        operation = bench.add(title, kind, **config).operation
        bench.run(operation, counted.runners)
        done = bench.poll(operation)
        assert (done.completed_count, done.failed_count) == (rows, 0), title
    one, two = bench.values("one"), bench.values("two")
    wanted = {
        "comparison": [left == right for left, right in zip(one, two, strict=True)],
        "score": [float(left == right) for left, right in zip(one, two, strict=True)],
        "concat": [left + right for left, right in zip(one, two, strict=True)],
        "read again": [False] * rows,
        "prompt": [f"{left} and {right}" for left, right in zip(one, two, strict=True)],
        "whole": one,
        "made": ["long " * 20_000 + left[:9] for left in one],
        "SQL": [left.upper() for left in one],
        "asked": [str(row) for row in range(rows)],
    }
    assert {title: bench.values(title) for title in wanted} == wanted
    assert verify_sheet(store, sheet.no) == []
    again = Counting()
    store_nothing_known(store, bench)
    assert bench.recalculate(again.runners, statuses=()).cached_count == rows * len(_COLUMNS)
    assert again.rows == 0
    # a cell that is edited in the middle, and what it turns stale, alone
    bench.edit("one", 50, two[50])
    bench.recalculate(again.runners)
    assert bench.values("comparison")[50] is True
    assert again.rows == len(_COLUMNS)
    assert verify_sheet(store, sheet.no) == []


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_the_memory_of_a_run_does_not_follow_the_width_of_its_sheet(store: Store, who: Principal) -> None:
    sheet = wide_sheet(store, who, 4_000, 50_000)
    code = "import sys; from tests.pipelines.test_wide_cells import peaks as p; "
    code += "p(*sys.argv[1:4], int(sys.argv[4]))"
    arguments = [str(store.settings.root), str(sheet.table_id), str(sheet.id), str(sheet.no)]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=1_800
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    # 200 MB are read of each column, and as much or twice as much is made
    assert max(found.values()) < 1_000, found
