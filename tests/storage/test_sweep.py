"""What a crash leaves between file and commit is found and removed; what a commit names stays."""

import os
from datetime import timedelta
from pathlib import Path

from storage.domain.keys import Principal
from storage.store import Store
from storage.sweep import GRACE, sweep_sheets
from storage.tables import create_table
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
