"""Commits of several writers: one wins, the others are told, and no write is lost."""

import subprocess
import sys

import pytest

from storage.domain.errors import CommitConflict
from storage.domain.keys import Principal
from storage.domain.manifests import Fill, Manifest, Part
from storage.domain.sheets import Sheet
from storage.engine.rows.sheets import find_sheet_by_no
from storage.engine.snapshots import Snapshot, commit
from storage.settings import Settings
from storage.sheets import get_sheet
from storage.store import Store, open_store
from storage.tables import create_table


def sheet_of(store: Store, who: Principal) -> Sheet:
    table = create_table(store, who)
    (sheet_id,) = table.sheet_row_counts
    return get_sheet(store, who, table_id=table.id, sheet_id=sheet_id)


def head(store: Store, sheet_no: int) -> tuple[Snapshot, int]:
    """Read the current snapshot and the next row number, in a read of its own."""
    with store.catalog.read() as connection:
        sheet = find_sheet_by_no(connection, sheet_no)
        assert sheet is not None
        return store.snapshots.get(connection, sheet.head_no), sheet.next_row_no


def add_row(store: Store, base: Snapshot, row_no: int, value: str) -> Manifest:
    """Commit one more row on top of a snapshot."""
    now = store.now()
    manifest = base.manifest.appended([Part(row_no, 1, {1: Fill(value, now)}, now)])
    with store.catalog.transaction() as connection:
        commit(connection, base, manifest, next_row_no=row_no + 1, now=now)
    return manifest


def add_rows(settings: Settings, sheet_no: int, name: str, count: int) -> None:
    """Add rows against other writers, again after each conflict."""
    store = open_store(settings)
    for at in range(count):
        while True:
            try:
                add_row(store, *head(store, sheet_no), f"{name}{at}")
                break
            except CommitConflict:
                continue
    store.close()


def test_a_commit_on_a_moved_head_is_refused_and_leaves_nothing(store: Store, who: Principal) -> None:
    sheet = sheet_of(store, who)
    base, next_row_no = head(store, sheet.no)
    won = add_row(store, base, next_row_no, "won")
    with pytest.raises(CommitConflict):
        add_row(store, base, next_row_no, "lost")
    now, after = head(store, sheet.no)
    assert (now.manifest, after) == (won, next_row_no + 1)
    # the number of the refused snapshot is given again: what was read before must not stand for it
    again = add_row(store, now, after, "again")
    assert head(store, sheet.no)[0].manifest == again


def test_two_processes_lose_no_row(store: Store, settings: Settings, who: Principal) -> None:
    sheet = sheet_of(store, who)
    code = (
        "import sys; from pathlib import Path; from storage.settings import Settings; "
        "from tests.storage.test_snapshots import add_rows; "
        "add_rows(Settings(home=Path(sys.argv[1])), int(sys.argv[2]), sys.argv[3], 40)"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(settings.root), str(sheet.no), name])
        for name in "ab"
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    base, _ = head(store, sheet.no)
    rows = [source.value for part in base.manifest.parts for source in part.columns.values()]
    assert sorted(rows[1:]) == sorted(f"{name}{at}" for name in "ab" for at in range(40))
