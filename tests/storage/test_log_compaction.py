"""Compaction on real files: fewer of them, each log once, nobody reads a file that is gone."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from storage import log_compaction
from storage.domain.request_logs import LogFilter, Score, from_us
from storage.engine.data_root import file_sha256
from storage.engine.log_rewrite import LogsDamaged, LogsMissing
from storage.engine.log_schema import log_segments
from storage.engine.rows.log_segments import LOGS, SCORES, Segment, select_segments
from storage.leases import LeaseRefused
from storage.log_compaction import compact_logs, due_days
from storage.log_flush import find_segment_faults, flush_logs, publish_views, sweep_log_files
from storage.request_logs import scan_request_logs
from storage.store import Store
from tests.logs import add_logs

MERGE_FILES = 3


def scanned(store: Store, workspace_id: int = 1) -> list[int]:
    batches = scan_request_logs(store, workspace_id, LogFilter(), batch_rows=50)
    return [log_id for batch in batches for log_id in batch.column("id").to_pylist()]


def named(store: Store, kind: str = LOGS) -> list[Segment]:
    with store.logs.read() as connection:
        return select_segments(connection, kind=kind)


def later(store: Store, **gap: float) -> Store:
    now = store.now
    return replace(store, now=lambda: now() + timedelta(**gap))


@pytest.fixture
def flushed(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids of logs in so many small files that they are merged, of two workspaces."""
    monkeypatch.setattr("storage.domain.log_compaction.MERGE_FILES", MERGE_FILES)
    ids: list[int] = []
    for _ in range(MERGE_FILES):
        ids += add_logs(store, 5, score=Score("tone", 7))
        add_logs(store, 2, workspace_id=2)
        flush_logs(store)
    return ids


def test_small_files_become_one_sorted_file_in_the_folder_of_its_day(
    store: Store, flushed: list[int]
) -> None:
    before = named(store)
    old = store.data.path(before[0].key)
    assert due_days(store) == [store.now().date()]
    result = compact_logs(store)
    assert (result.files_before, result.files_after) == (2 * MERGE_FILES, 2)
    assert result.rows_before == result.rows_after == 7 * MERGE_FILES
    assert result.bytes_before == sum(segment.bytes for segment in before)
    assert due_days(store) == []
    own, _ = named(store)
    assert own.key.startswith(f"logs/1/{store.now().date().isoformat()}/request_logs-1-")
    kept = pq.read_table(store.data.path(own.key))
    assert kept.column("id").to_pylist() == flushed
    assert kept.column_names == pq.read_table(old).column_names
    assert scanned(store) == flushed[::-1]
    assert len(scanned(store, 2)) == 2 * MERGE_FILES
    assert find_segment_faults(store) == {}
    assert from_us(own.from_us or 0) <= from_us(own.to_us or 0) <= store.now()
    (scores,) = named(store, SCORES)
    assert scores.rows == len(flushed)


def test_in_a_burst_small_files_wait_but_not_for_ever(
    store: Store, flushed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.log_compaction.is_pouring", lambda *_: True)
    assert due_days(store) == []
    assert compact_logs(store).files_after == 0
    assert due_days(later(store, seconds=91)) == [store.now().date()]
    monkeypatch.undo()
    monkeypatch.setattr("storage.domain.log_compaction.MERGE_FILES", MERGE_FILES)
    assert due_days(store) == [store.now().date()]
    assert len(flushed) == 5 * MERGE_FILES


def test_today_waits_and_a_day_that_is_over_becomes_one_file(store: Store) -> None:
    for _ in range(3):
        add_logs(store, 2)
        flush_logs(store)
    assert due_days(store) == []
    tomorrow = later(store, days=1)
    assert due_days(tomorrow) == [store.now().date()]
    assert compact_logs(tomorrow, date(2000, 1, 1)).files_after == 0
    assert compact_logs(tomorrow, store.now().date()).files_after == 1
    assert scanned(store) == [6, 5, 4, 3, 2, 1]


def test_the_views_show_the_new_files_at_once(store: Store, flushed: list[int]) -> None:
    publish_views(store, everything=True)
    compact_logs(store)
    later_ = later(store, hours=3)
    sweep_log_files(later_)
    path = str(store.data.path("views/default.duckdb"))
    with duckdb.connect(path, read_only=True) as connection:
        query = "SELECT count(*), (SELECT count(*) FROM scores) FROM request_logs"
        assert connection.execute(query).fetchall() == [(len(flushed), len(flushed))]


def test_old_files_stay_for_those_who_read_them_and_then_go(store: Store, flushed: list[int]) -> None:
    old = [store.data.path(segment.key) for segment in named(store)]
    compact_logs(store)
    sweep_log_files(store)
    assert all(path.exists() for path in old)
    soon = later(store, minutes=50)
    assert due_days(soon) == []
    sweep_log_files(soon)
    assert all(path.exists() for path in old)
    over = later(store, hours=2)
    assert due_days(over) == [over.now().date()]
    assert compact_logs(over).swept_files >= len(old)
    assert not any(path.exists() for path in old)
    assert due_days(over) == []
    assert find_segment_faults(store) == {}


def test_a_second_compaction_claims_nothing(
    store: Store, flushed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = log_compaction.rewrite_logs
    refused = []

    def meanwhile(*args: Any, **options: Any) -> Any:
        with pytest.raises(LeaseRefused):
            compact_logs(store)
        refused.append(1)
        return write(*args, **options)

    monkeypatch.setattr(log_compaction, "rewrite_logs", meanwhile)
    assert compact_logs(store).files_after == 2
    assert len(refused) == 2
    assert scanned(store) == flushed[::-1]


def test_one_that_lost_its_lease_replaces_nothing(
    store: Store, flushed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = log_compaction.rewrite_logs

    def overtaken(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(log_compaction, "rewrite_logs", write)
        compact_logs(later(store, minutes=5))
        return write(*args, **options)

    monkeypatch.setattr(log_compaction, "rewrite_logs", overtaken)
    with pytest.raises(LeaseRefused):
        compact_logs(store)
    assert len(named(store)) == 2
    assert scanned(store) == flushed[::-1]


@pytest.mark.parametrize("place", ["rewrite_logs", "replace_segments", "raise_change", "publish_views"])
def test_a_crash_anywhere_loses_and_doubles_nothing(
    store: Store, flushed: list[int], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    whole = getattr(log_compaction, place)

    class Crash(Exception):
        pass

    def crash(*args: Any, **options: Any) -> Any:
        whole(*args, **options)
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(log_compaction, place, crash)
        with pytest.raises(Crash):
            compact_logs(store)
    assert scanned(store) == flushed[::-1]
    assert find_segment_faults(store) == {}
    compact_logs(store)
    assert scanned(store) == flushed[::-1]
    assert len(named(store)) == 2


def test_a_file_that_lacks_a_log_never_takes_the_place_of_others(store: Store, flushed: list[int]) -> None:
    segment = named(store)[0]
    path = store.data.path(segment.key)
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)
    with pytest.raises(LogsDamaged):
        compact_logs(store)
    with store.logs.transaction() as connection:
        found = log_segments.c.id == segment.id
        connection.execute(log_segments.update().where(found).values(sha256=file_sha256(path)))
    with pytest.raises(LogsMissing):
        compact_logs(store)
    assert segment.key in {one.key for one in named(store)}


def test_files_of_an_older_release_are_compacted_by_when_they_were_written(store: Store) -> None:
    add_logs(store, 3)
    flush_logs(store)
    with store.logs.transaction() as connection:
        connection.exec_driver_sql("UPDATE log_segments SET from_us = NULL, to_us = NULL")
    add_logs(store, 3)
    flush_logs(store)
    assert compact_logs(later(store, days=1)).files_after == 1
    assert scanned(store) == [6, 5, 4, 3, 2, 1]
