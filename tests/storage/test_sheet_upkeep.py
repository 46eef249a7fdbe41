"""Overlays are folded and small segments joined while callers go on: what is read stays as it is."""

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from storage import sheet_upkeep
from storage.cells import edit_cell
from storage.domain.cells import Cell, CellState
from storage.domain.ids import CellAddress, cell_id
from storage.domain.keys import Principal
from storage.domain.overlay import Entry, Patch, Restated
from storage.domain.paging import PageRequest
from storage.domain.rows import Row
from storage.domain.sheets import Sheet
from storage.engine.rows.columns import mark_columns_deleted, select_columns
from storage.engine.rows.sheets import find_sheet_by_no
from storage.engine.rows.versions import find_version
from storage.engine.snapshots import Snapshot, commit
from storage.leases import LeaseRefused, held_lease
from storage.restores import create_version
from storage.row_changes import add_rows, delete_rows
from storage.rows import list_rows
from storage.settings import Settings
from storage.sheet_upkeep import compact_sheet, due_sheets
from storage.sheets import delete_sheet, get_sheet
from storage.store import Store, open_store
from storage.tables import create_table
from storage.verification import verify_sheet
from tests.importing import import_rows, imported_sheet, start

MESSAGES = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]


@pytest.fixture
def sheet(store: Store, who: Principal) -> Sheet:
    rows = [[f"r{at}", at, at / 2 or None] for at in range(50)]
    return imported_sheet(store, who, create_table(store, who).id, ["a", "b", "c"], rows)


def place(sheet: Sheet) -> dict[str, Any]:
    return {"table_id": sheet.table_id, "sheet_id": sheet.id}


def rows(store: Store, who: Principal, sheet: Sheet, **query: Any) -> list[Row]:
    page = list_rows(store, who, **place(sheet), request=PageRequest(1000), **query).page
    return list(page.items)


def cell(store: Store, who: Principal, sheet: Sheet, row: int, column: int) -> Cell:
    return rows(store, who, sheet)[row].cells[column]


def head(store: Store, who: Principal, sheet: Sheet) -> Snapshot:
    with store.catalog.read() as connection:
        return store.snapshots.get(connection, get_sheet(store, who, **place(sheet)).head_no)


def edit(store: Store, who: Principal, sheet: Sheet, row: int, column: int, value: Any) -> None:
    edit_cell(store, who, **place(sheet), cell_id=cell(store, who, sheet, row, column).id, value=value)


def patched(store: Store, sheet: Sheet, patch: Patch) -> None:
    with store.catalog.transaction() as connection:
        found = find_sheet_by_no(connection, sheet.no)
        assert found is not None
        base = store.snapshots.get(connection, found.head_no)
        commit(connection, base, base.manifest, patch=patch, next_row_no=found.next_row_no, now=store.now())


def test_a_fold_keeps_values_times_and_states(store: Store, who: Principal, sheet: Sheet) -> None:
    for at in range(0, 50, 7):
        edit(store, who, sheet, at, at % 3, {"edited": at})
    add_rows(store, who, **place(sheet), count=3)
    with store.catalog.read() as connection:
        b = select_columns(connection, sheet.no)[1].no
    failed = CellState("failed", error="timeout", error_message="It took long", input_hash="abc")
    patched(store, sheet, Patch({b: {5: Entry(None, store.now(), failed)}}))
    create_version(store, who, **place(sheet), name="edited")
    before = rows(store, who, sheet)
    updated_at = get_sheet(store, who, **place(sheet)).updated_at
    done = compact_sheet(store, sheet.no, everything=True)
    assert done.cells_folded == 9
    assert not head(store, who, sheet).overlay
    assert rows(store, who, sheet) == rows(store, who, sheet, version_number=3) == before
    assert get_sheet(store, who, **place(sheet)).updated_at == updated_at
    assert get_sheet(store, who, **place(sheet)).version_count == 3
    assert verify_sheet(store, sheet.no) == []
    edit(store, who, sheet, 5, 1, "again")
    assert cell(store, who, sheet, 5, 1).value == "again"
    again = compact_sheet(store, sheet.no)
    assert (again.segments, again.rows, again.version) == (0, done.rows, done.version)


def test_messages_are_shown_as_before(store: Store, who: Principal) -> None:
    from storage.domain.imports import Imported  # noqa: PLC0415
    from storage.engine.segments import segment_key, write_segment  # noqa: PLC0415
    from storage.import_commit import commit_import  # noqa: PLC0415
    from storage.operations import claim  # noqa: PLC0415

    table = create_table(store, who)
    started = start(store, who, table.id)
    operation = claim(store, started.operation.no, 1, "run-1")
    key = segment_key(started.sheet.id, store.new_id())
    file = write_segment(store.data, key, 0, [(0, "messages", [MESSAGES, None, MESSAGES])])
    sheet = commit_import(store, operation, Imported(("input",), 3, (file,)))
    edit(store, who, sheet, 2, 0, [{"role": "x", "content": 5}])
    before = rows(store, who, sheet)
    assert [row.cells[0].display_value for row in before[:2]] == ["[user]: Hello", None]
    assert compact_sheet(store, sheet.no, everything=True).cells_folded == 1
    assert rows(store, who, sheet) == before


def test_a_column_given_a_state_as_one_keeps_its_entries_on_top(
    store: Store, who: Principal, sheet: Sheet
) -> None:
    with store.catalog.read() as connection:
        a, b, _ = (column.no for column in select_columns(connection, sheet.no))
    stale = CellState("stale")
    patched(store, sheet, Patch({b: {1: Entry("old", store.now())}}))
    patched(store, sheet, Patch({}, {b: Restated(stale, sheet.next_row_no)}))
    patched(store, sheet, Patch({b: {2: Entry("new", store.now())}, a: {3: Entry("x", store.now())}}))
    before = rows(store, who, sheet)
    assert compact_sheet(store, sheet.no, everything=True).cells_folded == 1
    assert rows(store, who, sheet) == before
    assert [row.cells[1].state.status for row in before[:3]] == ["stale", "completed", "stale"]


def test_a_hundred_small_imports_become_one_part(store: Store, who: Principal, sheet: Sheet) -> None:
    for at in range(70):
        started = start(store, who, sheet.table_id, sheet.id)
        import_rows(store, started.operation, ["a", f"late {at // 30}"], [[f"i{at}", at]])
    delete_rows(store, who, **place(sheet), row_indices=[10, 60, 61])
    edit(store, who, sheet, 55, 0, "edited")
    before = rows(store, who, sheet)
    assert (sheet.no, str(sheet.id)) in due_sheets(store)
    done = compact_sheet(store, sheet.no)
    assert (done.parts_before, done.parts_after) == (70, 3)
    assert rows(store, who, sheet) == before
    assert due_sheets(store) == []
    assert verify_sheet(store, sheet.no) == []
    parts = head(store, who, sheet).manifest.parts
    assert len({id(part.columns) for part in parts}) == 1
    assert compact_sheet(store, sheet.no).segments == 0


def test_what_outgrows_the_catalog_is_due(
    store: Store, who: Principal, sheet: Sheet, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(store, who, sheet, 0, 0, "x")
    assert due_sheets(store) == []
    assert compact_sheet(store, sheet.no).segments == 0
    with store.catalog.read() as connection:
        a = select_columns(connection, sheet.no)[0].no
    entry = Entry("x", store.now())
    patched(store, sheet, Patch({a: dict.fromkeys(range(1, 10_002), entry)}))
    assert due_sheets(store) == [(sheet.no, str(sheet.id))]
    assert compact_sheet(store, sheet.no).cells_folded == 50
    edit(store, who, sheet, 1, 1, "ü" * 4_000_000)
    assert get_sheet(store, who, **place(sheet)).row_count == 50


MEANWHILE: dict[str, Callable[[Store, Principal, Sheet], Any]] = {
    "edit of a folded cell": lambda s, w, t: edit(s, w, t, 3, 0, "newer"),
    "edit of another cell": lambda s, w, t: edit(s, w, t, 4, 2, "newer"),
    "rows added": lambda s, w, t: add_rows(s, w, **place(t), count=2),
    "rows deleted": lambda s, w, t: delete_rows(s, w, **place(t), row_indices=[3, 7]),
    "import": lambda s, w, t: import_rows(
        s, start(s, w, t.table_id, t.id).operation, ["a", "new"], [["i", "n"]]
    ),
    "version": lambda s, w, t: create_version(s, w, **place(t), name="now"),
    "restore of before the edits": lambda s, w, t: create_version(
        s, w, **place(t), source_version_id=version_id(s, t, 2)
    ),
    "restore of the middle": lambda s, w, t: create_version(
        s, w, **place(t), source_version_id=version_id(s, t, 3)
    ),
    "column deleted": lambda s, w, t: delete_column(s, t),
    "another compaction's work": lambda s, w, t: sheet_upkeep._compact(s, t.no, everything=True),
}


def version_id(store: Store, sheet: Sheet, number: int) -> Any:
    with store.catalog.read() as connection:
        found = find_version(connection, sheet.no, number)
    assert found is not None
    return found.id


def delete_column(store: Store, sheet: Sheet) -> None:
    with store.catalog.transaction() as connection:
        column = select_columns(connection, sheet.no)[0]
        mark_columns_deleted(connection, [column.no], store.now())
        base = store.snapshots.get(connection, get_head(connection, sheet))
        manifest = base.manifest.without_columns([column.no])
        commit(connection, base, manifest, next_row_no=10**6, now=store.now())


def get_head(connection: Any, sheet: Sheet) -> int:
    found = find_sheet_by_no(connection, sheet.no)
    assert found is not None
    return found.head_no


@pytest.mark.parametrize("name", MEANWHILE)
def test_what_is_written_meanwhile_is_kept(
    store: Store, who: Principal, sheet: Sheet, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(store, who, sheet, 3, 0, "first")
    create_version(store, who, **place(sheet), name="first")
    edit(store, who, sheet, 3, 0, "second")
    edit(store, who, sheet, 7, 1, {"x": 1})
    versions = {number: rows(store, who, sheet, version_number=number) for number in (2, 3)}
    expected: list[list[Row]] = []
    rewrite = sheet_upkeep.rewrite_rows

    def act(*arguments: Any) -> Any:
        if not expected:
            expected.append([])
            MEANWHILE[name](store, who, sheet)
            expected[0] = rows(store, who, sheet)
        return rewrite(*arguments)

    monkeypatch.setattr(sheet_upkeep, "rewrite_rows", act)
    compact_sheet(store, sheet.no, everything=True)
    assert rows(store, who, sheet) == expected[0]
    assert {number: rows(store, who, sheet, version_number=number) for number in versions} == versions
    assert verify_sheet(store, sheet.no) == []


def test_one_compaction_of_a_sheet_at_a_time(store: Store, who: Principal, sheet: Sheet) -> None:
    edit(store, who, sheet, 3, 0, "x")
    with held_lease(store, f"compact_sheet_{sheet.no}"), pytest.raises(LeaseRefused):
        compact_sheet(store, sheet.no, everything=True)
    assert compact_sheet(store, sheet.no, everything=True).cells_folded == 1


def test_a_deleted_sheet_is_left_alone(store: Store, who: Principal, sheet: Sheet) -> None:
    edit(store, who, sheet, 3, 0, "x")
    delete_sheet(store, who, **place(sheet))
    assert compact_sheet(store, sheet.no, everything=True).segments == 0


def test_readers_and_writers_see_every_state_whole(store: Store, who: Principal, sheet: Sheet) -> None:
    """One writer counts two cells up together with a third, readers never see them apart."""
    with store.catalog.read() as connection:
        a, b, _ = (column.no for column in select_columns(connection, sheet.no))
    stop = threading.Event()
    torn: list[Any] = []

    def count_up() -> None:
        count = 0
        while not stop.is_set():
            count += 1
            entry = Entry(count, store.now())
            patched(store, sheet, Patch({a: {1: entry}, b: {1: entry, 40: entry}}))

    def look() -> None:
        while not stop.is_set():
            seen = rows(store, who, sheet)
            values = {seen[0].cells[0].value, seen[0].cells[1].value, seen[39].cells[1].value}
            if len(values) != 1 and "r0" not in values:
                torn.append(values)

    threads = [threading.Thread(target=one) for one in (count_up, look, look)]
    for thread in threads:
        thread.start()
    segments = sum(compact_sheet(store, sheet.no, everything=True).segments for _ in range(20))
    stop.set()
    for thread in threads:
        thread.join()
    assert torn == []
    assert segments


def edit_often(settings: Settings, sheet_no: int, row_no: int, count: int) -> None:
    """Write 1, 2, ... into a cell."""
    store = open_store(settings)
    with store.catalog.read() as connection:
        column = select_columns(connection, sheet_no)[0]
    for at in range(1, count + 1):
        with store.catalog.transaction() as connection:
            sheet = find_sheet_by_no(connection, sheet_no)
            assert sheet is not None
            base = store.snapshots.get(connection, sheet.head_no)
            patch = Patch({column.no: {row_no: Entry(at, store.now())}})
            commit(
                connection, base, base.manifest, patch=patch, next_row_no=sheet.next_row_no, now=store.now()
            )
    store.close()


def test_no_edit_of_another_process_is_lost_to_a_compaction(
    store: Store, settings: Settings, who: Principal, sheet: Sheet
) -> None:
    code = (
        "import sys; from pathlib import Path; from storage.settings import Settings; "
        "from tests.storage.test_sheet_upkeep import edit_often; "
        "edit_often(Settings(home=Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]), 150)"
    )
    arguments = [sys.executable, "-c", code, str(settings.root), str(sheet.no)]
    writers = [subprocess.Popen([*arguments, row]) for row in ("1", "50")]
    while any(writer.poll() is None for writer in writers):
        compact_sheet(store, sheet.no, everything=True)
    assert [writer.wait() for writer in writers] == [0, 0]
    assert [cell(store, who, sheet, row, 0).value for row in (0, 49)] == [150, 150]
    with store.catalog.read() as connection:
        a = select_columns(connection, sheet.no)[0].no
    assert cell(store, who, sheet, 0, 0).id == cell_id(store.cell_key, CellAddress(a, 1))
