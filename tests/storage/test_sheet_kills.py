"""kill -9 between every two steps of what changes a sheet: it happened whole or not at all."""

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from storage import cells, column_changes, new_columns, restores, row_changes, sheet_upkeep
from storage.domain.keys import Principal
from storage.domain.paging import PageRequest
from storage.domain.rows import Row
from storage.domain.sheets import Sheet
from storage.engine import snapshots
from storage.rows import list_rows
from storage.settings import Settings
from storage.sheets import get_sheet
from storage.store import Store, open_store
from storage.sweep import sweep_sheets
from storage.tables import create_table
from storage.verification import verify_sheet
from storage.versions import list_versions
from storage.workspaces import find_key
from tests.conftest import KEY
from tests.importing import imported_sheet

STEPS = [
    ("edit", "cells", "commit"),
    ("edit", "snapshots", "insert_patch"),
    ("edit", "snapshots", "_insert"),
    ("edit", "snapshots", "_move_head"),
    ("edit", "cells", "record_audit"),
    ("add", "row_changes", "insert_segments"),
    ("add", "row_changes", "commit"),
    ("add", "row_changes", "touch_table"),
    ("add", "row_changes", "record_audit"),
    ("delete", "row_changes", "record_audit"),
    ("column", "new_columns", "insert_bound"),
    ("column", "new_columns", "commit"),
    ("column", "new_columns", "record_structure"),
    ("column", "new_columns", "record_audit"),
    ("column", "new_columns", "enqueue_column"),
    ("change", "column_changes", "update_column"),
    ("change", "column_changes", "commit"),
    ("change", "column_changes", "record_structure"),
    ("change", "column_changes", "record_audit"),
    ("drop", "column_changes", "mark_columns_deleted"),
    ("drop", "column_changes", "delete_edges"),
    ("drop", "column_changes", "commit"),
    ("drop", "column_changes", "record_structure"),
    ("drop", "column_changes", "record_audit"),
    ("restore", "restores", "commit_again"),
    ("restore", "restores", "restore_columns"),
    ("restore", "restores", "mark_restored"),
    ("restore", "restores", "update_sheet"),
    ("restore", "restores", "add_version"),
    ("restore", "restores", "record_audit"),
    ("compact", "sheet_upkeep", "relaid"),
    ("compact", "sheet_upkeep", "insert_segments"),
    ("compact", "sheet_upkeep", "insert_patch"),
    ("compact", "sheet_upkeep", "commit"),
    ("compact", "sheet_upkeep", "Compacted"),
]
MODULES = {
    "cells": cells,
    "column_changes": column_changes,
    "new_columns": new_columns,
    "restores": restores,
    "row_changes": row_changes,
    "sheet_upkeep": sheet_upkeep,
    "snapshots": snapshots,
}


def act(store: Store, who: Principal, ids: dict[str, UUID], what: str) -> None:
    page = list_rows(store, who, **ids, request=PageRequest(1000))
    if what == "edit":
        wanted = page.page.items[1].cells[0].id
        cells.edit_cell(store, who, **ids, cell_id=wanted, value="killed")
    elif what == "add":
        values = [{column.id: f"{at}" for column in page.columns} for at in range(900)]
        row_changes.add_rows(store, who, **ids, values=values)
    elif what == "delete":
        row_changes.delete_rows(store, who, **ids, row_indices=[0, 2])
    elif what == "column":
        new = new_columns.NewColumn("new", "comparison", {"sources": ["a"], "target": "r1"})
        new_columns.create_column(store, who, **ids, new=new)
    elif what == "change":
        change = column_changes.ColumnChange(title="renamed")
        column_changes.update_column_of(store, who, **ids, column_id=page.columns[0].id, change=change)
    elif what == "drop":
        column_changes.delete_column(store, who, **ids, column_id=page.columns[1].id)
    elif what == "restore":
        source = list_versions(store, who, **ids, request=PageRequest(1)).items[0]
        restores.create_version(store, who, **ids, source_version_id=source.id)
    else:
        sheet_upkeep.compact_sheet(store, get_sheet(store, who, **ids).no, everything=True)


def die_at(home: str, table_id: str, sheet_id: str, what: str, module: str, step: str) -> None:
    store = open_store(Settings(home=Path(home)))
    facts = find_key(store, KEY)
    assert facts is not None
    ids = {"table_id": UUID(table_id), "sheet_id": UUID(sheet_id)}
    setattr(MODULES[module], step, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
    act(store, facts.principal, ids, what)


@pytest.mark.slow
@pytest.mark.parametrize(("what", "module", "step"), STEPS)
def test_a_killed_change_leaves_the_sheet_as_it_was(
    store: Store, settings: Settings, who: Principal, what: str, module: str, step: str
) -> None:
    sheet: Sheet = imported_sheet(
        store, who, create_table(store, who).id, ["a", "b"], [[f"r{at}", at] for at in range(9)]
    )
    ids = {"table_id": sheet.table_id, "sheet_id": sheet.id}

    def seen() -> tuple[list[Row], Any]:
        found = list_rows(store, who, **ids, request=PageRequest(1000))
        versions = list_versions(store, who, **ids, request=PageRequest(100)).items
        return list(found.page.items), (found.columns, versions, get_sheet(store, who, **ids))

    restores.create_version(store, who, **ids, name="kept")
    first = list_rows(store, who, **ids, request=PageRequest(9)).page.items[0]
    cells.edit_cell(store, who, **ids, cell_id=first.cells[1].id, value="before")
    before = seen()
    code = "import sys; from tests.storage.test_sheet_kills import die_at; die_at(*sys.argv[1:])"
    arguments = [str(settings.root), str(sheet.table_id), str(sheet.id), what, module, step]
    died = subprocess.run([sys.executable, "-c", code, *arguments], check=False, timeout=60)
    if (what, step) == ("compact", "insert_patch"):
        # nothing is left of this overlay, so the step is not reached
        assert died.returncode == 0
        assert seen()[0] == before[0]
        return
    assert died.returncode == -signal.SIGKILL
    after = seen()
    if (what, step) == ("compact", "Compacted"):
        # it was committed: rows read as before
        assert after[0] == before[0]
    else:
        assert after == before
    assert verify_sheet(store, sheet.no) == []
    orphans = 1 if step != "Compacted" and (what in {"add", "compact"}) else 0
    assert sweep_sheets(store, grace=timedelta(seconds=-5)).files == orphans
    if what == "compact":
        return  # its lease runs out by itself, in a minute
    act(store, who, ids, what)
    assert seen() != before
    assert verify_sheet(store, sheet.no) == []
