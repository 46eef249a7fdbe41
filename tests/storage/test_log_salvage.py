"""The manifest made from the files is the one that was lost, whatever crashes left among them."""

from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest

from storage import log_compaction, log_flush
from storage.domain.errors import NotFound
from storage.domain.keys import Principal
from storage.domain.log_files import FilesOverlap
from storage.domain.request_logs import LogFilter, Score
from storage.engine.rows.log_segments import LOGS, Segment, select_segments
from storage.health import check_storage
from storage.log_compaction import compact_logs
from storage.log_deletion import delete_log
from storage.log_flush import find_segment_faults, flush_logs
from storage.log_salvage import rebuild_manifest
from storage.request_logs import get_request_log, scan_request_logs
from storage.settings import Settings
from storage.store import LogsLost, Store, opened
from tests.logs import add_logs


def ids(store: Store, workspace_id: int = 1) -> list[int]:
    batches = scan_request_logs(store, workspace_id, LogFilter(newest_first=False), batch_rows=500)
    return [log_id for batch in batches for log_id in batch.column("id").to_pylist()]


def named(store: Store) -> list[Segment]:
    with store.logs.read() as connection:
        return [replace(one, created_us=0) for one in select_segments(connection)]


@pytest.fixture
def filled(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Logs in a rewritten file, whose old files still stand there, in new files, and in the tail."""
    monkeypatch.setattr("storage.domain.log_compaction.MERGE_FILES", 3)
    own: list[int] = []
    for _ in range(4):
        own += add_logs(store, 3, score=Score("tone", 7))
        add_logs(store, 2, workspace_id=2)
        flush_logs(store)
        compact_logs(store)
    return own + add_logs(store, 2)


def test_a_lost_manifest_comes_back_as_it_was(store: Store, filled: list[int]) -> None:
    before = named(store)
    with store.logs.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM log_segments")
    assert ids(store) == filled[-2:]
    rebuilt = rebuild_manifest(store)
    assert (rebuilt.files, rebuilt.rows, rebuilt.scores) == (len(before), 20, 0)
    assert sorted(named(store), key=lambda one: one.key) == sorted(before, key=lambda one: one.key)
    assert ids(store) == filled
    assert len(ids(store, 2)) == 8
    assert find_segment_faults(store) == {}
    rebuild_manifest(store)
    assert ids(store) == filled


def test_of_a_lost_database_all_but_the_tail_comes_back_and_ids_go_on(
    store: Store, who: Principal, settings: Settings, filled: list[int]
) -> None:
    store.close()
    for name in ("logs.sqlite3", "logs.sqlite3-wal", "logs.sqlite3-shm"):
        (settings.home / name).unlink(missing_ok=True)
    # an empty database beside the files would hide them, and give their ids again
    with pytest.raises(LogsLost, match="rebuild-logs"), opened(settings):
        pass
    assert any("is missing" in one.sentence for one in check_storage(settings) if one.state == "failed")
    with opened(settings, logs_lost=True) as fresh:
        assert ids(fresh) == []
        assert rebuild_manifest(fresh).scores == 12
        assert ids(fresh) == filled[:-2]
        assert get_request_log(fresh, who, 1)["scores"] == {"tone": 7}
        (new,) = add_logs(fresh, 1, score=Score("tone", 9))
        # ids of the other workspace's files count too
        assert new > filled[-3]
        flush_logs(fresh)
        assert ids(fresh) == [*filled[:-2], new]
        assert get_request_log(fresh, who, new)["scores"] == {"tone": 9}
        assert find_segment_faults(fresh) == {}


class Crash(Exception):
    pass


@pytest.mark.parametrize("place", ["write_log_segments", "rewrite_logs"])
def test_what_a_crash_left_is_not_named_beside_what_it_repeats(
    store: Store, who: Principal, filled: list[int], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    module: Any = log_flush if place == "write_log_segments" else log_compaction
    whole = getattr(module, place)

    def crash(*args: Any, **options: Any) -> Any:
        whole(*args, **options)
        raise Crash

    delete_log(store, who, filled[0])
    with monkeypatch.context() as patch:
        patch.setattr(module, place, crash)
        with pytest.raises(Crash):
            flush_logs(store) if module is log_flush else compact_logs(store, rewrite_all=True)
    expected = ids(store)
    assert expected == filled[1:]
    rebuild_manifest(store)
    assert ids(store) == expected
    (new,) = add_logs(store, 1)
    flush_logs(store)
    rebuild_manifest(store)
    assert ids(store) == [*expected, new]
    with pytest.raises(NotFound):
        get_request_log(store, who, filled[0])


def test_files_of_which_it_cannot_be_told_which_counts_are_refused(store: Store) -> None:
    for _ in range(2):
        add_logs(store, 4)
        flush_logs(store)
    first, second = [store.data.path(one.key) for one in named(store) if one.kind == LOGS]
    table = pq.read_table(second).replace_schema_metadata(
        {"promptlake": '{"first_id": 3, "last_id": 8, "made_us": 1}'}
    )
    pq.write_table(table, second)
    with pytest.raises(FilesOverlap, match="move one of them away"):
        rebuild_manifest(store)
    assert len(named(store)) == 2
    second.write_bytes(b"no Parquet")
    with pytest.raises(ValueError, match="cannot be read"):
        rebuild_manifest(store)
    assert first.exists()


def test_files_without_a_word_of_themselves_are_read(store: Store) -> None:
    add_logs(store, 4)
    flush_logs(store)
    (path,) = [store.data.path(one.key) for one in named(store)]
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    rebuild_manifest(store)
    assert ids(store) == [1, 2, 3, 4]
