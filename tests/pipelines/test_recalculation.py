"""Recalculation: what is computed, and what is not computed twice."""

from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from pipelines.columns.protocol import RunContext, RunnerKind
from pipelines.columns.values import values_of
from pipelines.columns.wallet import Wallet
from pipelines.launches import attempt_of, launch_of
from storage.column_changes import delete_column
from storage.domain.keys import Principal
from storage.domain.results import Answers, Chunk
from storage.engine.cell_statuses import count_statuses
from storage.engine.rows.sheets import find_sheet_by_no
from storage.engine.segment_reader import SegmentReader
from storage.imports import cancel_operation
from storage.recalculations import sheet_status_counts
from storage.store import Store
from storage.verification import verify_sheet
from tests.recalculating import MANY, Bench, Counting


def same(bench: Bench, title: str = "Same", **config: Any) -> None:
    bench.run(bench.add(title, "comparison", **{"sources": ["A", "B"], **config}).operation)


def chain(bench: Bench, length: int) -> list[str]:
    """Add columns that copy A, each from the one before."""
    titles = ["A", *(f"C{at}" for at in range(length))]
    for source, title in pairwise(titles):
        bench.run(bench.add(title, "composition", source=source).operation)
    return titles[1:]


def test_a_new_column_is_computed(bench: Bench) -> None:
    same(bench)
    assert bench.values("Same") == [True, False, True]
    (cell, *_) = bench.cells("Same")
    assert cell.state.input_hash is not None
    assert len(cell.state.input_hash) == 32
    assert cell.state.last_computed_version == 3
    found = bench.start()
    assert (found.operation.status, found.cell_count) == ("completed", 0)


def test_an_edit_makes_its_row_stale_down_the_graph_and_no_other_cell(bench: Bench) -> None:
    same(bench)
    chain(bench, 3)
    assert bench.edit("A", 1, "x") == 4
    assert bench.edit("A", 1, "y") == 0
    assert bench.edit("A", 1, "x") == 0
    for title in ("Same", "C0", "C1", "C2"):
        assert bench.statuses(title) == ["completed", "stale", "completed"]
    counted = Counting()
    found = bench.recalculate(counted.runners)
    assert (counted.rows, found.cell_count, found.completed_count) == (4, 4, 4)
    assert bench.values("Same") == [True, True, True]
    assert bench.values("C2") == ["1", "x", "3"]


def test_unchanged_inputs_call_no_runner(bench: Bench) -> None:
    same(bench)
    chain(bench, 2)
    counted = Counting()
    before = bench.cells("Same")
    found = bench.recalculate(counted.runners, statuses=())
    assert (counted.rows, found.completed_count, found.cached_count) == (0, 9, 9)
    assert bench.cells("Same") == before
    bench.edit("A", 0, "other")
    bench.edit("A", 0, "1")
    assert bench.statuses("Same")[0] == "stale"
    found = bench.recalculate(counted.runners)
    assert (counted.rows, found.completed_count) == (0, 3)
    assert bench.cells("Same") == before
    bench.recalculate(counted.runners, statuses=(), force=True)
    assert counted.rows == 9


def test_equal_values_upstream_call_none_downstream(bench: Bench) -> None:
    same(bench)
    bench.run(bench.add("Not", "comparison", sources=["Same"], target="true").operation)
    counted = Counting()
    bench.edit("A", 1, "z")
    assert bench.statuses("Not") == ["completed", "stale", "completed"]
    found = bench.recalculate(counted.runners)
    # what is compared differs, what comes of it does not
    assert (counted.rows, found.completed_count, found.cached_count) == (1, 2, 1)
    assert bench.statuses("Not") == ["completed"] * 3


def test_a_changed_configuration_makes_the_column_and_its_descendants_stale(bench: Bench) -> None:
    same(bench)
    bench.run(bench.add("Not", "comparison", sources=["Same"], target="true").operation)
    changed = bench.change("Same", config={"sources": ["A"], "target": "1"})
    assert changed.affected == (bench.column("Same").id, bench.column("Not").id)
    assert changed.stale_count == 6
    assert (
        bench.change("Same", config={"sources": ["A"], "target": "1"}).version_number
        == changed.version_number
    )
    assert bench.statuses("Not") == ["stale"] * 3
    # the last good values stay until there are better ones
    assert bench.values("Same") == [True, False, True]
    bench.recalculate()
    assert bench.values("Same") == [True, False, False]
    assert bench.values("Not") == [True, False, False]
    assert bench.change("A", title="Z").stale_count == 0


def test_a_failed_cell_fails_what_reads_it_and_keeps_its_last_value(bench: Bench) -> None:
    bench.run(
        bench.add("N", "composition", source="B", operation="parse_value", value_type="NUMBER").operation
    )
    bench.run(bench.add("M", "composition", source="N").operation)
    assert bench.errors("N") == [None, "cannot_parse", None]
    assert bench.errors("M") == [None, "upstream_failed", None]
    bench.edit("B", 0, "no")
    counted = Counting()
    found = bench.recalculate(counted.runners)
    # two of N are tried, and nothing of M is run
    assert (counted.rows, found.failed_count, found.completed_count) == (2, 4, 0)
    (cell, *_) = bench.cells("N")
    assert (cell.value, cell.state.status, cell.state.error) == (1, "failed", "cannot_parse")
    bench.edit("B", 0, "1")
    bench.edit("B", 1, "2")
    bench.recalculate()
    assert bench.values("M") == [1, 2, 3]


def test_a_type_without_an_engine_fails_its_cells_and_completes(bench: Bench) -> None:
    column = bench.add("Text", "llm", prompt="{A}", engine={"provider": "stub", "model": "echo"})
    bench.run(column.operation, {})
    found = bench.poll(column.operation) if column.operation else None
    assert found is not None
    assert (found.operation.status, found.failed_count) == ("completed", 3)
    assert bench.errors("Text") == ["engine_unavailable"] * 3


def test_a_deleted_source_fails_with_its_name_gone(bench: Bench, store: Store, who: Principal) -> None:
    same(bench)
    deleted = delete_column(store, who, **bench.place, column_id=bench.column("B").id)
    assert deleted.stale_count == 3
    assert bench.errors("Same") == ["missing_source"] * 3
    bench.recalculate()
    assert bench.statuses("Same") == ["failed"] * 3
    assert bench.errors("Same") == ["missing_source"] * 3
    bench.change("Same", config={"sources": ["A"], "target": "1"})
    bench.recalculate()
    assert bench.values("Same") == [True, False, False]


def test_rows_columns_and_statuses_choose_the_cells(bench: Bench) -> None:
    same(bench)
    chain(bench, 1)
    bench.change("Same", config={"sources": ["A"], "target": "3"})
    found = bench.recalculate(column_ids=[bench.column("Same").id], row_indices=[2])
    assert found.cell_count == 1
    assert bench.statuses("Same") == ["stale", "stale", "completed"]
    assert bench.start(statuses=("failed",)).operation.status == "completed"
    assert bench.recalculate().cell_count == 2


def test_what_reads_a_stale_column_that_is_not_asked_for_says_so(bench: Bench) -> None:
    chain(bench, 2)
    bench.edit("A", 0, "new")
    bench.recalculate(column_ids=[bench.column("C1").id])
    assert bench.errors("C1") == ["upstream_stale", None, None]
    bench.recalculate()
    assert bench.values("C1")[0] == "new"


def test_many_results_become_a_segment_with_their_failures(large: Bench, store: Store) -> None:
    counted = Counting()
    added = large.add("N", "composition", source="B", operation="parse_value", value_type="NUMBER")
    large.run(added.operation, counted.runners)
    assert counted.rows == MANY
    total, counts = sheet_status_counts(store, large.who, **large.place)
    assert (total, counts) == (3 * MANY, {"completed": 3 * MANY - 12, "failed": 12})
    cells = large.cells("N", 0, MANY)
    assert [cell.value for cell in cells] == [n if n % 1_000 else None for n in range(MANY)]
    assert [cell.state.error for cell in cells[:2]] == ["cannot_parse", None]
    assert (
        cells[0].state.execution_id == cells[1].state.execution_id == (added.operation and added.operation.id)
    )
    assert verify_sheet(store, large.sheet_no) == []
    assert large.edit("B", 0, "5") == 1
    found = large.recalculate(counted.runners)
    # eleven that failed before are tried again, and fail again
    assert (found.cell_count, found.failed_count) == (12, 11)
    assert large.values("N")[:2] == [5, 1]


def test_cells_that_are_alike_are_counted_without_being_read_wherever_the_rows_begin(
    large: Bench, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted() -> list[Counter[str]]:
        with store.catalog.read() as connection:
            sheet = find_sheet_by_no(connection, large.sheet_no)
            assert sheet is not None
            head = store.snapshots.get(connection, sheet.head_no)
        (part,) = head.manifest.parts
        # a sheet that was imported in two stretches has two parts over one segment of results
        second = replace(part, first_row_no=part.first_row_no + 5_000, offset=5_000, count=MANY - 5_000)
        halves = [replace(part, count=5_000), second]
        manifest = replace(head.manifest, parts=tuple(halves))
        numbers = [no for no, one in part.columns.items() if getattr(one, "notes", None) is not None]
        return [count_statuses(store.segments, replace(head, manifest=manifest), no) for no in numbers]

    same(large)
    with monkeypatch.context() as patch:
        patch.setattr(SegmentReader, "read_arrow", None)
        assert counted() == [Counter(completed=MANY)]
    added = large.add("N", "composition", source="B", operation="parse_value", value_type="NUMBER")
    large.run(added.operation)
    assert counted() == [Counter(completed=MANY), Counter(completed=MANY - 12, failed=12)]


def test_many_unchanged_cells_are_found_so_without_a_runner(large: Bench, store: Store) -> None:
    same(large)
    chain(large, 1)
    before = large.cells("Same", 5_000, 10)
    large.change("Same", config={"sources": ["A", "B"], "comparison_type": {"operator": "not_equals"}})
    large.change("Same", config={"sources": ["A", "B"]})
    assert set(large.statuses("Same")) == {"stale"}
    counted = Counting()
    large.edit("A", 7, "seven")
    found = large.recalculate(counted.runners)
    assert (counted.rows, found.completed_count) == (2, MANY + 1)
    assert large.cells("Same", 5_000, 10) == before
    assert large.values("Same")[7] is False
    assert sheet_status_counts(store, large.who, **large.place)[1] == {"completed": 4 * MANY}


def test_a_part_of_many_cells_leaves_the_others_as_they_are(large: Bench, store: Store) -> None:
    same(large)
    before = large.cells("Same", 0, MANY)
    large.change("Same", config={"sources": ["A"], "target": "1"})
    rows = list(range(1, MANY))
    large.recalculate(row_indices=rows)
    after = large.cells("Same", 0, MANY)
    assert (after[0].value, after[0].state.status) == (before[0].value, "stale")
    assert after[0].updated_at == before[0].updated_at
    assert [cell.value for cell in after[1:3]] == [True, False]
    assert sheet_status_counts(store, large.who, **large.place)[1]["stale"] == 1
    assert verify_sheet(store, large.sheet_no) == []


@pytest.mark.parametrize(
    ("kind", "config", "job"),
    [
        ("comparison", {"sources": ["A", "B"]}, "recalculate_sheet"),
        ("llm", {"prompt": "{A}", "engine": {"provider": "stub", "model": "echo"}}, "ask_models"),
        (
            "score",
            {
                "sources": ["A", "B"],
                "metric": "cosine_similarity",
                "embedding": {"provider": "stub", "model": "letters"},
            },
            "ask_models",
        ),
    ],
)
def test_a_run_that_asks_models_is_a_job_with_a_pool(
    bench: Bench, kind: str, config: dict[str, Any], job: str
) -> None:
    operation = bench.add("New", kind, **config).operation
    assert operation is not None
    assert launch_of(operation, "sheet").job == job
    assert attempt_of(launch_of(operation, "sheet").run_config) == (operation.no, 1)


def test_a_mirror_follows_the_other_sheet_by_row(store: Store, who: Principal, bench: Bench) -> None:
    other = Bench(store, who, ["X"], [["a"]] * 5)
    column = bench.column("A")
    source = {**{name: str(one) for name, one in bench.place.items()}, "column_id": str(column.id)}
    other.run(other.add("Mirror", "composition", source=source).operation)
    other.run(other.add("Copy", "composition", source="Mirror").operation)
    assert other.values("Copy") == ["1", "2", "3", None, None]
    assert bench.edit("A", 2, "new") == 2
    assert other.statuses("Copy") == ["completed", "completed", "stale", "completed", "completed"]
    other.recalculate()
    assert other.values("Copy")[2] == "new"


def test_an_edited_cell_down_a_long_chain(store: Store, who: Principal) -> None:
    bench = Bench(store, who, ["A"], [["1"], ["2"]])
    titles = chain(bench, 20)
    assert bench.edit("A", 0, "x") == 20
    bench.recalculate()
    assert bench.values(titles[-1]) == ["x", "2"]


class Priced:
    """Answers a row at a time, for a dollar each."""

    def __init__(self, wallet: Wallet) -> None:
        self.wallet = wallet

    def compute(self, chunk: Chunk) -> Iterable[Answers]:
        for at in range(len(chunk)):
            self.wallet.pay(1.0)
            metrics = {"request_count": 1, "price": 1.0, "input_tokens": 3, "output_tokens": 4}
            yield Answers(values_of([f"answer {chunk.row_indices[at]}"]), rows=[at], metrics={0: metrics})


def priced(context: RunContext) -> nullcontext[Priced]:
    return nullcontext(Priced(context.wallet))


def test_a_budget_ends_a_recalculation_and_what_is_done_stays(bench: Bench) -> None:
    kind = RunnerKind(engine=lambda _: "priced 1", open=priced, keeps=True)
    added = bench.add("Text", "llm", prompt="{A}", engine={"provider": "stub", "model": "echo"})
    assert added.operation is not None
    cancel_operation(bench.store, bench.who, **bench.place, operation_id=added.operation.id)
    found = bench.recalculate({"llm": kind}, budget=2.0)
    assert (found.operation.status, found.operation.message) == ("cancelled", "budget reached")
    assert found.status_counts == {"completed": 2, "stale": 1}
    assert bench.statuses("Text") == ["completed", "completed", "stale"]
    assert bench.values("Text") == ["answer 0", "answer 1", None]
    metrics = bench.cells("Text")[0].state.request_metrics
    assert metrics is not None
    assert metrics["price"] == 1.0
    assert sum(task.tokens for task in found.tasks) == 14
    assert bench.recalculate({"llm": kind}).cell_count == 1
