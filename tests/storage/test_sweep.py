"""What a crash leaves between file and commit is found and removed; what a commit names stays."""

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from storage.cells import edit_cell
from storage.domain.keys import Principal
from storage.domain.overlay import Entry, Patch
from storage.domain.paging import PageRequest
from storage.engine.rows.columns import select_columns
from storage.engine.rows.sheets import find_sheet_by_no
from storage.engine.schema import patches, segments, snapshots
from storage.engine.snapshots import commit
from storage.restores import create_version
from storage.row_changes import add_rows
from storage.rows import list_rows
from storage.sheet_upkeep import compact_sheet
from storage.sheets import delete_sheet
from storage.store import Store
from storage.sweep import GRACE, forget_unnamed, sweep_sheets
from storage.tables import create_table, delete_table
from storage.verification import verify_sheet
from tests.importing import imported_sheet, segment, start


def age(store: Store, key: str) -> Path:
    """Make a file as old as what a sweep takes."""
    path = store.data.path(key)
    then = (store.now() - GRACE - timedelta(minutes=1)).timestamp()
    os.utime(path, (then, then))
    return path


def test_only_old_files_that_nothing_names_are_removed(store: Store, who: Principal) -> None:
    table = create_table(store, who)
    sheet = imported_sheet(store, who, table.id, ["a"], [["x"]])
    (named,) = store.data.path(f"sheets/{sheet.id}").iterdir()
    age(store, f"sheets/{sheet.id}/{named.name}")
    target = start(store, who, table.id).sheet
    orphan = age(store, segment(store, target.id, 0, {0: ["y"]}).key)
    young = store.data.path(segment(store, target.id, 0, {0: ["z"]}).key)
    half = orphan.with_name(".half.parquet.7.tmp")
    half.write_bytes(b"PAR1")
    age(store, f"sheets/{target.id}/{half.name}")
    swept = sweep_sheets(store)
    assert (swept.files, orphan.exists(), half.exists()) == (2, False, False)
    assert (named.exists(), young.exists()) == (True, True)
    assert verify_sheet(store, sheet.no) == []
    assert sweep_sheets(store).files == 0


def counted(store: Store, table: Any, sheet_no: int) -> int:
    with store.catalog.read() as connection:
        query = sa.select(sa.func.count()).select_from(table).where(table.c.sheet_no == sheet_no)
        return connection.execute(query).scalar_one()


def later(store: Store, **after: float) -> Store:
    moment = store.now() + timedelta(**after)
    return replace(store, now=lambda: moment)


def test_states_between_versions_go_and_all_versions_read_as_before(store: Store, who: Principal) -> None:
    sheet = imported_sheet(store, who, create_table(store, who).id, ["a"], [[f"r{at}"] for at in range(9)])
    place = {"table_id": sheet.table_id, "sheet_id": sheet.id}

    def read(**query: Any) -> list[Any]:
        return list(list_rows(store, who, **place, request=PageRequest(99), **query).page.items)

    for at in range(30):
        edit_cell(store, who, **place, cell_id=read()[at % 9].cells[0].id, value=f"e{at}")
        add_rows(store, who, **place)
        if at % 10 == 0:
            create_version(store, who, **place, name=f"v{at}")
    before = {number: read(version_number=number) for number in range(2, 6)} | {0: read()}
    assert forget_unnamed(store).snapshots == 0
    done = forget_unnamed(later(store, hours=25))
    # the head and the first state are named, and so is what each version names
    assert (counted(store, snapshots, sheet.no), done.snapshots) == (6, 62 - 6)
    assert counted(store, patches, sheet.no) < 15
    store.snapshots.__init__()  # type: ignore[misc]
    assert {number: read(version_number=number) for number in range(2, 6)} | {0: read()} == before
    assert forget_unnamed(later(store, hours=25)).snapshots == 0


def test_a_segment_goes_when_it_was_unnamed_for_the_grace(store: Store, who: Principal) -> None:
    sheet = imported_sheet(store, who, create_table(store, who).id, ["a"], [["x"], ["y"]])
    folder = store.data.path(f"sheets/{sheet.id}")
    (first,) = folder.iterdir()
    for value in ("1", "2"):
        with store.catalog.transaction() as connection:
            found = find_sheet_by_no(connection, sheet.no)
            assert found is not None
            base = store.snapshots.get(connection, found.head_no)
            a = select_columns(connection, sheet.no)[0].no
            patch = Patch({a: {1: Entry(value, store.now())}})
            commit(
                connection, base, base.manifest, patch=patch, next_row_no=found.next_row_no, now=store.now()
            )
        compact_sheet(store, sheet.no, everything=True)
    assert len(list(folder.iterdir())) == 3
    # what the first fold wrote is in no version: its snapshots go, then it is noted, then it goes
    done = [forget_unnamed(later(store, hours=hours)) for hours in (25, 26, 51)]
    assert [one.segments for one in done] == [0, 0, 1]
    assert first in folder.iterdir()
    assert len(list(folder.iterdir())) == counted(store, segments, sheet.no) == 2
    place = {"table_id": sheet.table_id, "sheet_id": sheet.id}
    for version, value in ((None, "2"), (2, "x")):
        page = list_rows(store, who, **place, request=PageRequest(9), version_number=version).page
        assert page.items[0].cells[0].value == value
    assert verify_sheet(store, sheet.no) == []


@pytest.mark.parametrize("whole_table", [False, True])
def test_a_sheet_deleted_for_good_holds_nothing(store: Store, who: Principal, whole_table: bool) -> None:
    sheet = imported_sheet(store, who, create_table(store, who).id, ["a"], [["x"]])
    kept = imported_sheet(store, who, create_table(store, who).id, ["a"], [["x"]])
    if whole_table:
        delete_table(store, who, sheet.table_id)
    else:
        delete_sheet(store, who, table_id=sheet.table_id, sheet_id=sheet.id)
    assert forget_unnamed(later(store, days=6.9)).sheets == 0
    assert forget_unnamed(later(store, days=7.1)).sheets == (2 if whole_table else 1)
    assert forget_unnamed(later(store, days=8.2)).segments == 1
    assert list(store.data.path(f"sheets/{sheet.id}").iterdir()) == []
    assert counted(store, snapshots, sheet.no) == 1
    assert verify_sheet(store, kept.no) == []
