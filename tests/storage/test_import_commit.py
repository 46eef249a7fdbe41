"""An import joins its sheet whole, once, or not at all."""

import pytest

from storage.domain.errors import Conflict, ImportInProgress, NotFound
from storage.domain.imports import Imported
from storage.domain.keys import Principal
from storage.import_commit import commit_import
from storage.imports import get_import_operation
from storage.operations import ClaimRefused, claim, fail
from storage.sheets import delete_sheet, get_sheet
from storage.store import Store
from storage.tables import create_table, get_table
from tests.importing import import_rows, segment, start
from tests.recalculating import Bench


def test_an_import_adds_rows_columns_and_one_version_and_ends_its_operation(
    store: Store, who: Principal
) -> None:
    table = create_table(store, who)
    started = start(store, who, table.id)
    assert (started.sheet.row_count, started.sheet.version_count, started.sheet.index) == (0, 1, 1)
    sheet = import_rows(store, started.operation, ["name", "age"], [["Ann", 7], ["Bob", None]])
    assert (sheet.row_count, sheet.version_count, sheet.writer_no) == (2, 2, None)
    polled = get_import_operation(store, who, table_id=table.id, operation_id=started.operation.id)
    assert (polled.operation.status, polled.operation.rows_added, polled.row_count) == ("succeeded", 2, 2)
    assert get_table(store, who, table.id).sheet_row_counts[sheet.id] == 2


def test_a_repeat_answers_as_the_first_call_did_and_starts_nothing(store: Store, who: Principal) -> None:
    table = create_table(store, who)
    first = start(store, who, table.id, operation_id="mine")
    import_rows(store, first.operation, ["a"], [["1"]])
    again = start(store, who, table.id, operation_id="mine")
    assert (again.repeated, again.sheet) == (True, first.sheet)
    assert again.operation.status == "queued"
    assert get_table(store, who, table.id).sheet_count == 2
    with pytest.raises(Conflict):
        start(store, who, table.id, operation_id="mine", request_hash="1" * 64)


def test_one_import_at_a_time_writes_a_sheet(store: Store, who: Principal) -> None:
    table = create_table(store, who)
    first = start(store, who, table.id)
    with pytest.raises(ImportInProgress):
        start(store, who, table.id, first.sheet.id)
    fail(store, first.operation.no, 1, "no good")
    assert get_sheet(store, who, table_id=table.id, sheet_id=first.sheet.id) == first.sheet
    assert not start(store, who, table.id, first.sheet.id).repeated


def test_a_cancelled_import_publishes_nothing(store: Store, who: Principal) -> None:
    table = create_table(store, who)
    started = start(store, who, table.id)
    claimed = claim(store, started.operation.no, 1, "run-1")
    file = segment(store, started.sheet.id, 0, {0: ["x"]})
    assert fail(store, started.operation.no, 1, "cancelled")
    with pytest.raises(ClaimRefused):
        commit_import(store, claimed, Imported(("a",), 1, (file,)))
    after = get_sheet(store, who, table_id=table.id, sheet_id=started.sheet.id)
    assert (after.row_count, after.version_count, after.head_no) == (0, 1, started.sheet.head_no)


def test_a_delete_wins_over_a_running_import(store: Store, who: Principal) -> None:
    table = create_table(store, who)
    started = start(store, who, table.id)
    claimed = claim(store, started.operation.no, 1, "run-1")
    file = segment(store, started.sheet.id, 0, {0: ["x"]})
    delete_sheet(store, who, table_id=table.id, sheet_id=started.sheet.id)
    with pytest.raises(ClaimRefused):
        commit_import(store, claimed, Imported(("a",), 1, (file,)))
    polled = get_import_operation(store, who, table_id=table.id, operation_id=started.operation.id)
    assert (polled.operation.status, polled.operation.error_message) == ("failed", "sheet deleted")
    with pytest.raises(NotFound):
        get_sheet(store, who, table_id=table.id, sheet_id=started.sheet.id)


def test_an_untouched_default_sheet_is_replaced_and_a_used_one_appended_to(
    store: Store, who: Principal
) -> None:
    table = create_table(store, who)
    (sheet_id,) = table.sheet_row_counts
    first = import_rows(store, start(store, who, table.id, sheet_id).operation, ["a", "b"], [["1", "2"]])
    assert (first.row_count, first.version_count) == (1, 2)
    second = import_rows(store, start(store, who, table.id, sheet_id).operation, ["b", "c"], [["3", "4"]])
    assert (second.row_count, second.version_count) == (2, 3)


def test_computed_cells_of_imported_rows_read_as_stale(store: Store, who: Principal) -> None:
    bench = Bench(store, who, ["a"], [["1"], ["2"]])
    bench.run(bench.add("twice", "composition", operation="concat", sources=["a", "a"]).operation)
    place = bench.place
    import_rows(store, start(store, who, place["table_id"], place["sheet_id"]).operation, ["a"], [["3"]])
    assert [cell.state.status for cell in bench.cells("twice")] == ["completed", "completed", "stale"]
    assert bench.recalculate().operation.status == "completed"
    assert [cell.value for cell in bench.cells("twice")] == ["11", "22", "33"]


def test_segments_that_do_not_make_up_the_rows_are_refused(store: Store, who: Principal) -> None:
    table = create_table(store, who)
    started = start(store, who, table.id)
    claimed = claim(store, started.operation.no, 1, "run-1")
    file = segment(store, started.sheet.id, 0, {0: ["x", "y"]})
    twice = segment(store, started.sheet.id, 1, {0: ["z"]})
    for imported in (
        Imported(("a",), 1, (file,)),
        Imported(("a",), 2, (file, twice)),
        Imported(("a", "a"), 2, (file,)),
        Imported((), 2, (file,)),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            commit_import(store, claimed, imported)


def test_header_only_makes_columns_and_no_rows(store: Store, who: Principal) -> None:
    table = create_table(store, who)
    sheet = import_rows(store, start(store, who, table.id).operation, ["a", "b"], [])
    assert (sheet.row_count, sheet.version_count) == (0, 2)


def test_ids_of_another_workspace_are_unknown(store: Store, who: Principal, stranger: Principal) -> None:
    table = create_table(store, who)
    started = start(store, who, table.id)
    with pytest.raises(NotFound):
        start(store, stranger, table.id)
    with pytest.raises(NotFound):
        get_import_operation(store, stranger, table_id=table.id, operation_id=started.operation.id)
