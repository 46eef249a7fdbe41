"""Columns that read other sheets, while these are deleted, brought back and restored."""

from collections.abc import Callable
from uuid import UUID

import pytest

from storage.column_changes import delete_column
from storage.domain.errors import InvalidConfig
from storage.domain.keys import Principal
from storage.restores import create_version
from storage.row_changes import add_rows
from storage.sheet_changes import undelete_sheet
from storage.sheets import delete_sheet
from storage.store import Store
from storage.tables import delete_table, undelete_table
from tests.recalculating import Bench, Counting

MISSING = "missing_source"


def mirror(reader: Bench, title: str, source: Bench, of: str) -> None:
    """Add a column that reads a column of another sheet, and compute it."""
    named = {
        "table_id": str(source.place["table_id"]),
        "sheet_id": str(source.place["sheet_id"]),
        "column_id": str(source.column(of).id),
    }
    reader.run(reader.add(title, "composition", source=named).operation)


@pytest.fixture
def source(store: Store, who: Principal) -> Bench:
    bench = Bench(store, who, ["A", "Other"], [["1", "x"], ["2", "x"]])
    bench.run(bench.add("Own", "composition", source="A").operation)
    return bench


@pytest.fixture
def reader(store: Store, who: Principal, source: Bench) -> Bench:
    """M reads A of the source, Below reads M; Apart reads nothing of it."""
    bench = Bench(store, who, ["B"], [["b"], ["b"]])
    mirror(bench, "M", source, "A")
    bench.run(bench.add("Below", "composition", source="M").operation)
    bench.run(bench.add("Apart", "composition", source="B").operation)
    return bench


def sheet_goes(store: Store, who: Principal, place: dict[str, UUID]) -> Callable[[], object]:
    delete_sheet(store, who, **place)
    return lambda: undelete_sheet(store, who, **place)


def table_goes(store: Store, who: Principal, place: dict[str, UUID]) -> Callable[[], object]:
    delete_table(store, who, place["table_id"])
    return lambda: undelete_table(store, who, place["table_id"])


@pytest.mark.parametrize(
    ("goes", "named"),
    [
        (sheet_goes, "Sheet People was deleted, of which this column reads A"),
        (table_goes, "Table Untitled Table was deleted, of which this column reads A"),
    ],
)
def test_what_reads_a_deleted_sheet_says_so_and_comes_back_with_it(
    store: Store,
    who: Principal,
    source: Bench,
    reader: Bench,
    goes: Callable[..., Callable[[], object]],
    named: str,
) -> None:
    bring_back = goes(store, who, source.place)
    cell, _ = reader.cells("M")
    assert (cell.state.status, cell.state.error, cell.state.error_message) == ("stale", MISSING, named)
    assert cell.value == "1"
    assert (reader.statuses("Below"), reader.errors("Below")) == (["stale"] * 2, [None] * 2)
    assert reader.statuses("Apart") == ["completed"] * 2
    reader.recalculate()
    cell, _ = reader.cells("M")
    assert (cell.state.status, cell.state.error, cell.state.error_message) == ("failed", MISSING, named)
    assert reader.errors("Below") == ["upstream_failed"] * 2

    bring_back()
    assert (reader.statuses("M"), reader.errors("M")) == (["stale"] * 2, [None] * 2)
    assert reader.statuses("Below") == ["stale"] * 2
    assert reader.statuses("Apart") == source.statuses("Own") == ["completed"] * 2
    reader.recalculate()
    assert reader.values("M") == reader.values("Below") == ["1", "2"]
    assert reader.statuses("M") == reader.statuses("Below") == ["completed"] * 2
    # the graph is whole again
    assert source.edit("A", 1, "z") == 3


@pytest.mark.parametrize("goes", [sheet_goes, table_goes])
def test_nothing_computed_in_between_nothing_is_computed_again(
    store: Store, who: Principal, source: Bench, reader: Bench, goes: Callable[..., Callable[[], object]]
) -> None:
    before = reader.cells("M")
    goes(store, who, source.place)()
    assert reader.statuses("M") == ["stale"] * 2
    counted = Counting()
    reader.recalculate(counted.runners)
    assert counted.rows == 0
    assert reader.cells("M") == before


@pytest.mark.parametrize("goes", [sheet_goes, table_goes])
def test_a_reader_that_was_away_is_stale_when_it_comes_back(
    store: Store, who: Principal, source: Bench, reader: Bench, goes: Callable[..., Callable[[], object]]
) -> None:
    bring_back = goes(store, who, reader.place)
    source.edit("A", 0, "new")
    bring_back()
    assert reader.statuses("M") == reader.statuses("Below") == ["stale"] * 2
    assert reader.statuses("Apart") == ["completed"] * 2
    reader.recalculate()
    assert reader.values("Below") == ["new", "2"]


def test_a_reader_that_was_away_while_its_source_went_says_so(
    store: Store, who: Principal, source: Bench, reader: Bench
) -> None:
    delete_sheet(store, who, **reader.place)
    delete_column(store, who, **source.place, column_id=source.column("A").id)
    undelete_sheet(store, who, **reader.place)
    assert reader.errors("M") == [MISSING] * 2
    assert reader.errors("Below") == [None] * 2
    assert reader.statuses("Below") == ["stale"] * 2


def test_sheets_of_one_table_that_went_and_came_together_are_as_they_were(
    store: Store, who: Principal, source: Bench
) -> None:
    beside = Bench(store, who, ["B"], [["b"], ["b"]], source.place["table_id"])
    mirror(beside, "M", source, "A")
    outside = Bench(store, who, ["C"], [["c"]])
    mirror(outside, "Both", beside, "M")
    before = beside.cells("M")
    delete_table(store, who, source.place["table_id"])
    assert outside.errors("Both") == [MISSING]
    undelete_table(store, who, source.place["table_id"])
    assert beside.cells("M") == before
    assert (outside.statuses("Both"), outside.errors("Both")) == (["stale"], [None])


def test_a_sheet_deleted_with_its_table_stays_gone_until_both_are_back(
    store: Store, who: Principal, source: Bench, reader: Bench
) -> None:
    delete_sheet(store, who, **source.place)
    delete_table(store, who, source.place["table_id"])
    undelete_table(store, who, source.place["table_id"])
    assert reader.errors("M") == [MISSING] * 2
    undelete_sheet(store, who, **source.place)
    assert reader.errors("M") == [None] * 2


def test_a_deleted_column_that_a_restore_brings_back_is_read_again(
    store: Store, who: Principal, source: Bench, reader: Bench
) -> None:
    with_it = create_version(store, who, **source.place, name="with")
    delete_column(store, who, **source.place, column_id=source.column("A").id)
    assert reader.errors("M") == [MISSING] * 2
    reader.recalculate()
    add_rows(store, who, **source.place)
    # what moves in the sheet says nothing to those who read what is gone
    assert reader.statuses("M") == ["failed"] * 2
    without = create_version(store, who, **source.place, name="without")
    create_version(store, who, **source.place, source_version_id=with_it.id)
    assert (reader.statuses("M"), reader.errors("M")) == (["stale"] * 2, [None] * 2)
    reader.recalculate()
    assert reader.values("M") == ["1", "2"]
    assert source.edit("A", 0, "x") == 3
    reader.recalculate()
    assert reader.values("Below") == ["x", "2"]
    create_version(store, who, **source.place, source_version_id=without.id)
    assert reader.errors("M") == [MISSING] * 2


def test_a_restored_mirror_keeps_its_values_and_is_stale_only_if_its_source_was_written_since(
    store: Store, who: Principal, source: Bench, reader: Bench
) -> None:
    top = Bench(store, who, ["C"], [["c"]])
    mirror(top, "Top", reader, "Below")
    saved = create_version(store, who, **reader.place, name="saved")
    reader.edit("B", 0, "spoilt")
    create_version(store, who, **reader.place, source_version_id=saved.id)
    for title in ("M", "Below", "Apart"):
        assert reader.statuses(title) == ["completed"] * 2
    source.edit("A", 0, "new")
    reader.recalculate()
    assert reader.values("Below") == ["new", "2"]
    top.recalculate()
    create_version(store, who, **reader.place, source_version_id=saved.id)
    assert (reader.values("M"), reader.values("Below")) == (["1", "2"], ["1", "2"])
    assert reader.statuses("M") == reader.statuses("Below") == ["stale"] * 2
    assert reader.statuses("Apart") == ["completed"] * 2
    assert top.statuses("Top") == ["stale"]
    reader.recalculate()
    assert (reader.values("Below"), reader.statuses("Below")) == (["new", "2"], ["completed"] * 2)


def test_a_mirror_restored_after_its_source_was_deleted_says_so_until_that_is_back(
    store: Store, who: Principal, source: Bench, reader: Bench
) -> None:
    saved = create_version(store, who, **reader.place, name="saved")
    with_it = create_version(store, who, **source.place, name="with")
    delete_column(store, who, **reader.place, column_id=reader.column("M").id)
    delete_column(store, who, **source.place, column_id=source.column("A").id)
    create_version(store, who, **reader.place, source_version_id=saved.id)
    assert (reader.values("M"), reader.errors("M")) == (["1", "2"], [MISSING] * 2)
    assert (reader.statuses("Below"), reader.errors("Below")) == (["stale"] * 2, [None] * 2)
    create_version(store, who, **source.place, source_version_id=with_it.id)
    assert (reader.statuses("M"), reader.errors("M")) == (["stale"] * 2, [None] * 2)
    reader.recalculate()
    assert (reader.values("Below"), reader.statuses("Below")) == (["1", "2"], ["completed"] * 2)


def test_a_dataset_cannot_be_mirrored_even_by_one_who_knows_its_ids(
    store: Store, who: Principal, source: Bench, reader: Bench
) -> None:
    from storage.engine.schema import tables  # noqa: PLC0415

    with store.catalog.transaction() as connection:
        where = tables.c.id == source.place["table_id"]
        connection.execute(tables.update().where(where).values(hidden=True))
    with pytest.raises(InvalidConfig, match="no such column"):
        mirror(reader, "Dataset", source, "Other")
