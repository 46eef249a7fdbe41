"""A backup is of one moment and comes back whole, also when logs are written and compacted meanwhile."""

import errno
import threading
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from storage.backup import BackupRefused, back_up, restore
from storage.domain.keys import Principal
from storage.domain.request_logs import LogFilter, Score
from storage.engine.data_root import file_sha256
from storage.log_compaction import compact_logs
from storage.log_deletion import delete_log
from storage.log_flush import find_segment_faults, flush_logs
from storage.request_logs import get_request_log, scan_request_logs
from storage.settings import Settings
from storage.store import Store, opened
from storage.tables import create_table
from storage.verification import verify_sheets
from tests.importing import imported_sheet
from tests.logs import add_logs


def ids(store: Store) -> list[int]:
    batches = scan_request_logs(store, 1, LogFilter(newest_first=False), batch_rows=500)
    return [log_id for batch in batches for log_id in batch.column("id").to_pylist()]


def sheet_hashes(store: Store, sheet_id: UUID) -> set[str]:
    folder = store.data.path(f"sheets/{sheet_id}")
    return {file_sha256(path) for path in folder.rglob("*.parquet")}


@pytest.fixture
def elsewhere(settings: Settings, tmp_path: Path) -> Settings:
    return replace(settings, home=tmp_path / "elsewhere")


@pytest.mark.slow
def test_what_was_acknowledged_before_a_backup_began_comes_back(
    store: Store, who: Principal, tmp_path: Path, elsewhere: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.domain.log_compaction.MERGE_FILES", 3)
    sheet = imported_sheet(store, who, create_table(store, who).id, ["name"], [["ada"], ["bob"]])
    last = [add_logs(store, 5, score=Score("tone", 7))[-1]]
    flush_logs(store)
    delete_log(store, who, 2)
    failures: list[BaseException] = []
    stop = threading.Event()

    def busy() -> None:
        try:
            while not stop.is_set():
                last[0] = add_logs(store, 20)[-1]
                flush_logs(store)
                compact_logs(store)
        except BaseException as error:  # noqa: BLE001 - the test's thread raises it
            failures.append(error)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        backups = []
        for number in range(3):
            acknowledged = last[0]
            made = back_up(store, tmp_path / f"backup-{number}")
            backups.append((acknowledged, made))
    finally:
        stop.set()
        thread.join()
    assert failures == []
    for number, (acknowledged, made) in enumerate(backups):
        settings = replace(elsewhere, home=tmp_path / f"restored-{number}")
        assert restore(tmp_path / f"backup-{number}", settings) == made
        with opened(settings) as restored:
            found = ids(restored)
            assert found == [i for i in range(1, made.next_log_id) if i != 2]
            assert made.next_log_id > acknowledged
            assert find_segment_faults(restored) == {}
            assert verify_sheets(restored) == {}
            assert sheet_hashes(restored, sheet.id) == sheet_hashes(store, sheet.id)
            assert get_request_log(restored, who, 1)["scores"] == {"tone": 7}
            assert restored.cell_key == store.cell_key
            # and it goes on where it was
            assert add_logs(restored, 1) == [made.next_log_id]
            flush_logs(restored)
            assert ids(restored) == [*found, made.next_log_id]


def test_what_is_done_after_a_backup_does_not_reach_into_it(
    store: Store, who: Principal, tmp_path: Path, elsewhere: Settings
) -> None:
    add_logs(store, 5)
    flush_logs(store)
    back_up(store, tmp_path / "backup")
    delete_log(store, who, 3)
    compact_logs(store, rewrite_all=True)
    for path in store.data.path("logs").rglob("*.parquet"):
        path.unlink()
    restore(tmp_path / "backup", elsewhere)
    with opened(elsewhere) as restored:
        assert ids(restored) == [1, 2, 3, 4, 5]


def test_a_backup_that_is_not_whole_and_a_home_in_use_are_refused(
    store: Store, tmp_path: Path, settings: Settings, elsewhere: Settings
) -> None:
    add_logs(store, 1)
    flush_logs(store)
    folder = tmp_path / "backup"
    back_up(store, folder)
    with pytest.raises(BackupRefused, match="not empty"):
        back_up(store, folder)
    with pytest.raises(BackupRefused, match="holds a store already"):
        restore(folder, settings)
    (folder / "backup.json").write_text("{}")
    with pytest.raises(BackupRefused, match="format"):
        restore(folder, elsewhere)
    (folder / "backup.json").unlink()
    with pytest.raises(BackupRefused, match="no whole backup"):
        restore(folder, elsewhere)
    for path in store.data.path("logs").rglob("*.parquet"):
        path.unlink()
    with pytest.raises(BackupRefused, match="missing"):
        back_up(store, tmp_path / "another")


def test_what_fails_half_way_can_be_tried_again(
    store: Store, tmp_path: Path, elsewhere: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_logs(store, 3)
    flush_logs(store)
    folder = tmp_path / "backup"

    def full(*_: object, **_named: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("storage.backup.link_files", full)
        with pytest.raises(OSError, match="No space"):
            back_up(store, folder)
    assert list(folder.iterdir()) == []
    back_up(store, folder)
    with monkeypatch.context() as patched:
        patched.setattr("storage.backup.publish_views", full)
        with pytest.raises(OSError, match="No space"):
            restore(folder, elsewhere)
    restore(folder, elsewhere)
    with opened(elsewhere) as restored:
        assert ids(restored) == [1, 2, 3]
