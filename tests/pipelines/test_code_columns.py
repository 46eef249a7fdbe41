"""Code and score columns of a sheet, from saving to cells; where the sandbox does not hold, nothing runs."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from storage import sandbox
from storage.domain.errors import InvalidConfig, Unguarded
from storage.domain.keys import Principal
from storage.engine.sandbox.process import Worker
from storage.imports import cancel_operation
from storage.operations import ClaimRefused
from storage.store import Store
from tests.recalculating import Bench, Counting
from tests.storage.sandbox.conftest import kind_of

ROWS = [["1", "one"], ["x", "two"], ["3", None]]


@pytest.fixture
def bench(store: Store, who: Principal) -> Bench:
    return Bench(store, who, ["Number", "A word"], ROWS)


def code(bench: Bench, title: str, text: str, language: str = "PYTHON", **config: Any) -> None:
    bench.run(bench.add(title, "code", code=text, language=language, **config).operation)


def test_each_language_makes_cells_from_cells(bench: Bench) -> None:
    code(bench, "Py", "return {'n': int(data['Number']), 'w': data.get('A word')}")
    code(bench, "Js", "return [data.Py.n + 1, data['A word']?.length]", "JAVASCRIPT")
    code(bench, "Sql", "(Py->>'n')::INT + 10", "SQL")
    assert bench.values("Py") == [{"n": 1, "w": "one"}, None, {"n": 3, "w": None}]
    assert bench.errors("Py") == [None, "code_error", None]
    assert bench.values("Js") == [[2, 3], None, [4, None]]
    assert bench.errors("Js") == [None, "upstream_failed", None]
    assert bench.values("Sql") == [11, None, 13]
    bench.run(
        bench.add("Score", "score", sources=["Sql", "Number"], metric="absolute_numeric_distance").operation
    )
    assert bench.values("Score") == [10.0, None, 10.0]


@pytest.mark.parametrize(
    ("language", "text", "value"),
    [("PYTHON", "return 7", 7), ("JAVASCRIPT", "return 1", 1), ("SQL", "1 + 1", 2)],
)
def test_code_that_reads_no_column_makes_a_cell_in_every_row(
    bench: Bench, language: str, text: str, value: int
) -> None:
    code(bench, "Same", text, language)
    assert bench.values("Same") == [value] * 3
    counted = Counting()
    bench.recalculate(counted.runners, statuses=())
    assert counted.rows == 0
    assert bench.recalculate(row_indices=[1], statuses=(), force=True).completed_count == 1


def test_names_of_sql_have_no_case(store: Store, who: Principal) -> None:
    bench = Bench(store, who, ["Answer", "answer", "Word"], [["a", "b", "c"]])
    code(bench, "Sql", '"Answer" || upper(wOrD) || word', "SQL")
    assert bench.values("Sql") == ["aCc"]
    for text in ("Answer || answer", "ANSWER"):
        with pytest.raises(InvalidConfig, match=r"one name in SQL|there is no column 'ANSWER'"):
            bench.add("Bad", "code", code=text, language="SQL")


def test_code_goes_on_under_the_names_in_its_text(bench: Bench) -> None:
    code(bench, "Py", "return data['A word']")
    before = bench.column("Py").config
    bench.change("A word", title="Another")
    assert bench.column("Py").config == before
    assert bench.statuses("Py") == ["completed"] * 3
    assert bench.edit("Another", 0, "uno") == 1
    bench.recalculate()
    assert bench.values("Py") == ["uno", "two", None]


def test_what_is_unchanged_is_not_evaluated_again(bench: Bench) -> None:
    code(bench, "Py", "return data['A word']")
    counted = Counting()
    bench.recalculate(counted.runners, statuses=())
    assert counted.rows == 0
    bench.change("Py", config={"code": "return data['A word'] # a note"})
    bench.recalculate(counted.runners)
    assert counted.rows == 3


def test_code_with_sources_reads_these_by_title(bench: Bench) -> None:
    code(bench, "All", "return sorted(data)", sources=["Number", "A word"])
    assert bench.values("All") == [["A word", "Number"]] * 3


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("PYTHON", "x = 1\nretrun x", "config.code: line 2"),
        ("JAVASCRIPT", "return (", "config.code: line"),
        ("SQL", "1; SELECT 2", "config.code: "),
        ("PYTHON", "return data", "config.sources: is required"),
    ],
)
def test_what_does_not_parse_is_not_saved(bench: Bench, language: str, text: str, words: str) -> None:
    with pytest.raises(InvalidConfig, match=words):
        bench.add("Bad", "code", code=text, language=language)


def test_where_the_sandbox_does_not_hold_nothing_is_saved_and_nothing_runs(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = bench.add("Py", "code", code="return 1", language="PYTHON")
    monkeypatch.setattr(sandbox, "_KINDS", {**sandbox._KINDS, "PYTHON": kind_of("no_kernel")})
    with pytest.raises(Unguarded, match="Function not implemented"):
        bench.add("Other", "code", code="return 1", language="PYTHON")
    bench.run(added.operation)
    assert bench.errors("Py") == ["engine_unavailable"] * 3
    assert "does not hold on this machine" in (bench.cells("Py")[0].state.error_message or "")
    code(bench, "Js", "return data['Number']", "JAVASCRIPT")
    assert bench.values("Js") == ["1", "x", "3"]


@pytest.mark.slow
def test_slow_code_is_heard_of_before_its_block_ends(store: Store, who: Principal) -> None:
    bench = Bench(store, who, ["N"], [[str(n)] for n in range(12)])
    text = "import time\ntime.sleep(0.3)\nif data.N == '1': 1 / 0"
    added = bench.add("Slow", "code", code=text, language="PYTHON")
    assert added.operation is not None
    seen = set()
    with ThreadPoolExecutor() as threads:
        run = threads.submit(bench.run, added.operation)
        while not run.done():
            found = bench.poll(added.operation)
            seen.add((found.completed_count, found.failed_count))
            time.sleep(0.05)
        run.result()
    assert len({one for one in seen if 0 < sum(one) < 12}) >= 2
    found = bench.poll(added.operation)
    assert (found.completed_count, found.failed_count) == (11, 1)


def test_cancelled_code_stops_within_its_block(store: Store, who: Principal) -> None:
    bench = Bench(store, who, ["N"], [[str(n)] for n in range(200)])
    text = "import time\ntime.sleep(0.1)\nreturn data.N"
    added = bench.add("Slow", "code", code=text, language="PYTHON")
    assert added.operation is not None
    started = time.monotonic()
    with ThreadPoolExecutor() as threads:
        run = threads.submit(bench.run, added.operation)
        time.sleep(1)
        cancel_operation(store, who, **bench.place, operation_id=added.operation.id)
        with pytest.raises(ClaimRefused):
            run.result()
    assert time.monotonic() - started < 10
    assert bench.statuses("Slow") == ["stale"] * 200


def test_a_worker_that_is_killed_costs_no_cell(
    bench: Bench, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Worker.ask_rows
    killed: list[int] = []

    def kill_the_first(worker: Worker, *request: Any) -> bytes:
        if not killed:
            killed.append(worker.pid)
            threading.Timer(0.1, os.kill, (worker.pid, signal.SIGKILL)).start()
        return asked(worker, *request)

    monkeypatch.setattr(Worker, "ask_rows", kill_the_first)
    started = time.monotonic()
    code(bench, "Py", "import time\nif data['Number'] == '1': time.sleep(0.3)\nreturn data['Number']")
    assert killed
    assert bench.values("Py") == ["1", "x", "3"]
    assert time.monotonic() - started < 20
