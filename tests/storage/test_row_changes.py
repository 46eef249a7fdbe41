"""Cells edited, rows added and deleted: what is read now, and what each earlier snapshot still says."""

import subprocess
import sys
from typing import Any
from uuid import UUID, uuid4

import pytest

from storage.cells import edit_cell, get_cell
from storage.domain.cells import CellState
from storage.domain.errors import CommitConflict, Invalid, NotFound, WrongColumnType
from storage.domain.ids import CellAddress, cell_id
from storage.domain.keys import Principal
from storage.domain.overlay import KEPT, Entry, Patch, Restated
from storage.domain.paging import PageRequest
from storage.domain.sheets import Sheet
from storage.engine.rows.columns import select_columns
from storage.engine.sheet_rows import read_columns
from storage.engine.snapshots import Snapshot, commit
from storage.row_changes import add_rows, delete_rows
from storage.rows import list_rows
from storage.settings import Settings
from storage.sheets import get_sheet
from storage.store import Store, open_store
from storage.tables import create_table
from storage.verification import verify_sheet
from storage.workspaces import find_key
from tests.conftest import KEY
from tests.importing import imported_sheet

ROWS = [["Ann", 7], ["Bob", None], ["", {"a": [1]}]]


@pytest.fixture
def sheet(store: Store, who: Principal) -> Sheet:
    return imported_sheet(store, who, create_table(store, who).id, ["name", "x"], ROWS)


def place(sheet: Sheet) -> dict[str, UUID]:
    return {"table_id": sheet.table_id, "sheet_id": sheet.id}


def read(store: Store, who: Principal, sheet: Sheet, **query: Any) -> list[list[Any]]:
    page = list_rows(store, who, **place(sheet), request=PageRequest(1000), **query).page
    return [[cell.value for cell in row.cells] for row in page.items]


def head(store: Store, who: Principal, sheet: Sheet) -> Snapshot:
    with store.catalog.read() as connection:
        return store.snapshots.get(connection, get_sheet(store, who, **place(sheet)).head_no)


def snapshot_values(store: Store, no: int, column_nos: list[int]) -> list[Any]:
    """What a snapshot says, read by a store that has nothing in memory."""
    fresh = open_store(store.settings)
    with fresh.catalog.read() as connection:
        found = fresh.snapshots.get(connection, no)
    values = read_columns(fresh.segments, found, column_nos, 0, 100_000)
    fresh.close()
    return values


def cell_at(store: Store, who: Principal, sheet: Sheet, row: int, column: int) -> UUID:
    page = list_rows(store, who, **place(sheet), request=PageRequest(1000)).page
    return page.items[row].cells[column].id


def test_an_edited_cell_reads_as_written_and_no_version_is_made(
    store: Store, who: Principal, sheet: Sheet
) -> None:
    wanted = cell_at(store, who, sheet, 1, 0)
    for value in ("Zoë", "\0", None, 1, 1.0, True, {"b": [None, "ü"]}, ""):
        edit = edit_cell(store, who, **place(sheet), cell_id=wanted, value=value)
        found = get_cell(store, who, **place(sheet), cell_id=wanted)
        assert (found, type(found.value)) == (edit.cell, type(value))
        assert read(store, who, sheet)[1][0] == value
    assert get_sheet(store, who, **place(sheet)).version_count == sheet.version_count
    assert read(store, who, sheet, version_number=2) == ROWS
    assert verify_sheet(store, sheet.no) == []


def test_an_equal_value_changes_nothing(store: Store, who: Principal, sheet: Sheet) -> None:
    before = head(store, who, sheet)
    wanted = cell_at(store, who, sheet, 0, 1)
    edit_cell(store, who, **place(sheet), cell_id=wanted, value=7)
    assert head(store, who, sheet).no == before.no
    edit_cell(store, who, **place(sheet), cell_id=wanted, value=7.0)
    assert head(store, who, sheet).no != before.no


def test_rows_come_empty_or_with_values(store: Store, who: Principal, sheet: Sheet) -> None:
    with store.catalog.read() as connection:
        name, x = (column.id for column in select_columns(connection, sheet.no))
    assert add_rows(store, who, **place(sheet)).first_index == 3
    added = add_rows(store, who, **place(sheet), count=3, values=[{name: "Cid"}, {x: 5, name: None}])
    assert (added.first_index, added.count, added.row_count) == (4, 3, 7)
    assert read(store, who, sheet)[3:] == [["", ""], ["Cid", ""], [None, 5], ["", ""]]
    many = [{name: f"n{at}", x: at} for at in range(1000)]
    add_rows(store, who, **place(sheet), values=many[:999])
    add_rows(store, who, **place(sheet), values=[*many[1:], {}])
    expected = [[f"n{at}", at] for at in range(1000)]
    found = list_rows(store, who, **place(sheet), request=PageRequest(1000, "desc")).page
    assert [[cell.value for cell in row.cells] for row in found.items][::-1] == [*expected[1:], ["", ""]]
    assert len(head(store, who, sheet).overlay.patches) == 1
    assert verify_sheet(store, sheet.no) == []


def test_rows_that_came_one_by_one_share_what_they_share(store: Store, who: Principal, sheet: Sheet) -> None:
    for _ in range(20):
        add_rows(store, who, **place(sheet))
    parts = head(store, who, sheet).manifest.parts
    assert len({id(part.columns) for part in parts[1:]}) <= 2


def test_a_row_number_is_never_given_again(store: Store, who: Principal, sheet: Sheet) -> None:
    last = cell_at(store, who, sheet, 2, 0)
    assert delete_rows(store, who, **place(sheet), row_indices=[2, 0, 2]) == 1
    assert read(store, who, sheet) == [ROWS[1]]
    with pytest.raises(NotFound):
        get_cell(store, who, **place(sheet), cell_id=last)
    add_rows(store, who, **place(sheet))
    with pytest.raises(NotFound):
        get_cell(store, who, **place(sheet), cell_id=last)
    with pytest.raises(NotFound):
        edit_cell(store, who, **place(sheet), cell_id=last, value="x")
    assert read(store, who, sheet, version_number=2) == ROWS


def test_what_breaks_a_rule_changes_nothing(
    store: Store, who: Principal, stranger: Principal, sheet: Sheet
) -> None:
    before = head(store, who, sheet)
    wanted = cell_at(store, who, sheet, 0, 0)
    for rows in ({"count": 0}, {"count": 1001}, {"values": [{}] * 1001}, {"values": [{uuid4(): 1}]}):
        with pytest.raises(Invalid):
            add_rows(store, who, **place(sheet), **rows)
    with pytest.raises(Invalid):
        add_rows(store, who, **place(sheet), count=1, values=[{}, {}])
    for indices in ([3], [-1], [0, 10**15]):
        with pytest.raises(Invalid):
            delete_rows(store, who, **place(sheet), row_indices=indices)
    with pytest.raises(Invalid):
        edit_cell(store, who, **place(sheet), cell_id=wanted, value="ü" * (4 * 1024 * 1024 + 1))
    for caller, forged in ((stranger, wanted), (who, uuid4())):
        with pytest.raises(NotFound):
            edit_cell(store, caller, **place(sheet), cell_id=forged, value="x")
    column_no = next(iter(before.manifest.parts[0].columns))
    foreign = cell_id(store.cell_key, CellAddress(column_no, 99))
    with pytest.raises(NotFound):
        edit_cell(store, who, **place(sheet), cell_id=foreign, value="x")
    assert head(store, who, sheet).no == before.no


def test_the_largest_value_is_kept(store: Store, who: Principal, sheet: Sheet) -> None:
    wanted = cell_at(store, who, sheet, 0, 0)
    value = "ü" * (4 * 1024 * 1024)
    edit_cell(store, who, **place(sheet), cell_id=wanted, value=value)
    assert get_cell(store, who, **place(sheet), cell_id=wanted).value == value


def test_computed_cells_are_not_written_by_hand(store: Store, who: Principal, sheet: Sheet) -> None:
    from storage.engine.schema import columns  # noqa: PLC0415

    wanted = cell_at(store, who, sheet, 0, 1)
    with store.catalog.transaction() as connection:
        connection.execute(columns.update().where(columns.c.title == "x").values(type="code"))
        x = next(one for one in select_columns(connection, sheet.no) if one.title == "x")
    with pytest.raises(WrongColumnType):
        edit_cell(store, who, **place(sheet), cell_id=wanted, value="x")
    with pytest.raises(WrongColumnType):
        add_rows(store, who, **place(sheet), values=[{x.id: 1}])
    add_rows(store, who, **place(sheet))
    page = list_rows(store, who, **place(sheet), request=PageRequest(9, "desc")).page
    assert [(cell.value, cell.state.status) for cell in page.items[0].cells] == [
        ("", "completed"),
        (None, "stale"),
    ]


def test_a_snapshot_reads_the_same_after_a_thousand_changes(
    store: Store, who: Principal, sheet: Sheet
) -> None:
    nos = [column for part in head(store, who, sheet).manifest.parts for column in part.columns]
    kept: dict[int, list[Any]] = {}
    wanted = [cell_at(store, who, sheet, row, column) for row in range(3) for column in range(2)]
    for at in range(1000):
        edit_cell(store, who, **place(sheet), cell_id=wanted[at % 5], value=f"{at}")
        if at % 100 == 0:
            add_rows(store, who, **place(sheet), count=2)
            no = head(store, who, sheet).no
            kept[no] = snapshot_values(store, no, nos)
    delete_rows(store, who, **place(sheet), row_indices=[1])
    assert len(kept) == 10
    assert all(snapshot_values(store, no, nos) == values for no, values in kept.items())


def test_a_column_changes_its_state_as_one_and_keeps_its_values(
    store: Store, who: Principal, sheet: Sheet
) -> None:
    with store.catalog.read() as connection:
        x = select_columns(connection, sheet.no)[1].no
    now = store.now()
    stale, failed = CellState("stale"), CellState("failed", error="timeout")
    for patch in (
        Patch({x: {2: Entry("edited", now)}}),
        Patch({}, {x: Restated(stale, sheet.next_row_no)}),
        Patch({x: {3: Entry(KEPT, now, failed)}}),
    ):
        with store.catalog.transaction() as connection:
            found = store.snapshots.get(connection, get_sheet(store, who, **place(sheet)).head_no)
            commit(
                connection, found, found.manifest, patch=patch, next_row_no=sheet.next_row_no, now=store.now()
            )
    add_rows(store, who, **place(sheet))
    page = list_rows(store, who, **place(sheet), request=PageRequest(9)).page
    found_cells = [(row.cells[1].value, row.cells[1].state) for row in page.items]
    done = CellState()
    assert found_cells == [(7, stale), ("edited", stale), ({"a": [1]}, failed), ("", done)]
    assert {row.cells[0].state for row in page.items} == {done}


def write_many(settings: Settings, table_id: str, sheet_id: str, name: str, count: int) -> None:
    """Edit a cell of one's own and add rows, against other writers."""
    store = open_store(settings)
    facts = find_key(store, KEY)
    assert facts is not None
    who, ids = facts.principal, {"table_id": UUID(table_id), "sheet_id": UUID(sheet_id)}
    page = list_rows(store, who, **ids, request=PageRequest(9))
    own = page.page.items[int(name)].cells[0].id
    for at in range(count):
        edit_cell(store, who, **ids, cell_id=own, value=f"{name}:{at}")
        assert get_cell(store, who, **ids, cell_id=own).value == f"{name}:{at}"
        add_rows(store, who, **ids, values=[{page.columns[1].id: f"{name}:{at}"}])
    store.close()


def test_two_processes_lose_no_edit_and_no_row(
    store: Store, settings: Settings, who: Principal, sheet: Sheet
) -> None:
    code = (
        "import sys; from pathlib import Path; from storage.settings import Settings; "
        "from tests.storage.test_row_changes import write_many; "
        "write_many(Settings(home=Path(sys.argv[1])), *sys.argv[2:5], 40)"
    )
    arguments = [str(settings.root), str(sheet.table_id), str(sheet.id)]
    writers = [subprocess.Popen([sys.executable, "-c", code, *arguments, name]) for name in "02"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    rows = read(store, who, sheet)
    assert [row[0] for row in rows[:3]] == ["0:39", "Bob", "2:39"]
    assert sorted(row[1] for row in rows[3:]) == sorted(f"{name}:{at}" for name in "02" for at in range(40))


def test_a_commit_on_a_moved_head_is_refused(store: Store, who: Principal, sheet: Sheet) -> None:
    base = head(store, who, sheet)
    edit_cell(store, who, **place(sheet), cell_id=cell_at(store, who, sheet, 0, 0), value="won")
    patch = Patch({1: {1: Entry("lost", store.now())}})
    with store.catalog.transaction() as connection, pytest.raises(CommitConflict):
        commit(connection, base, base.manifest, patch=patch, next_row_no=99, now=store.now())
    assert read(store, who, sheet)[0][0] == "won"
