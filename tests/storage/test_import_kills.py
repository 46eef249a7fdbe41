"""kill -9 between every two steps of an import: orphan files at most, and the next attempt succeeds."""

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from storage import import_commit
from storage.domain.imports import Imported
from storage.domain.keys import Principal
from storage.engine.rows.segments import select_segments
from storage.operations import claim, get_operation, raise_attempt
from storage.settings import Settings
from storage.sheets import get_sheet
from storage.store import Store, open_store
from storage.sweep import sweep_sheets
from storage.tables import create_table
from storage.verification import verify_sheet
from tests.importing import segment, start

STEPS = ("insert_segments", "commit", "update_sheet", "record_version", "_audit", "find_sheet_by_no")


def run_until(home: str, operation_no: int, sheet_id: str, step: str) -> None:
    """Work an import and die when a step of its commit is reached; "" means before the commit."""
    store = open_store(Settings(home=Path(home)))
    operation = claim(store, operation_no, 1, "run-1")
    file = segment(store, sheet_id, 0, {0: ["x", "y"]})
    if step:
        setattr(import_commit, step, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
    else:
        os.kill(os.getpid(), signal.SIGKILL)
    import_commit.commit_import(store, operation, Imported(("a",), 2, (file,)))


@pytest.mark.slow
@pytest.mark.parametrize("step", ["", *STEPS])
def test_a_killed_import_leaves_orphans_only(
    store: Store, settings: Settings, who: Principal, step: str
) -> None:
    table = create_table(store, who)
    started = start(store, who, table.id)
    code = "import sys; from tests.storage.test_import_kills import run_until as r; "
    code += "r(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])"
    arguments = [str(settings.root), str(started.operation.no), str(started.sheet.id), step]
    died = subprocess.run([sys.executable, "-c", code, *arguments], check=False, timeout=60)
    assert died.returncode == -signal.SIGKILL
    after = get_sheet(store, who, table_id=table.id, sheet_id=started.sheet.id)
    assert (after.row_count, after.version_count, after.head_no) == (0, 1, started.sheet.head_no)
    assert get_operation(store, started.operation.no).status == "running"
    with store.catalog.read() as connection:
        assert select_segments(connection, after.no) == {}
    assert verify_sheet(store, after.no) == []

    assert raise_attempt(store, started.operation.no, 1)
    again = claim(store, started.operation.no, 2, "run-2")
    file = segment(store, after.id, 0, {0: ["x", "y"]})
    done = import_commit.commit_import(store, again, Imported(("a",), 2, (file,)))
    assert (done.row_count, done.version_count) == (2, 2)
    assert sweep_sheets(store, grace=timedelta(seconds=-5)).files == 1
    assert verify_sheet(store, after.no) == []
