"""From tail to segments: each log exactly once, whatever happens between."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from storage import log_flush
from storage.domain.errors import Unavailable
from storage.domain.keys import Principal
from storage.domain.log_columns import VIEWS
from storage.domain.request_logs import LogFilter, Score
from storage.engine.rows.log_segments import move_flushed, select_segments
from storage.leases import LeaseRefused
from storage.log_flush import (
    find_segment_faults,
    flush_logs,
    flush_plan,
    publish_views,
    sweep_log_files,
)
from storage.request_logs import get_request_log, scan_request_logs
from storage.store import Store
from tests.logs import add_logs


def scanned(store: Store, workspace_id: int = 1, **wanted: Any) -> list[int]:
    return [
        log_id
        for batch in scan_request_logs(store, workspace_id, LogFilter(**wanted), batch_rows=7)
        for log_id in batch.column("id").to_pylist()
    ]


def segment_paths(store: Store) -> list[Path]:
    with store.logs.read() as connection:
        return [store.data.path(segment.key) for segment in select_segments(connection)]


def view(store: Store, query: str, workspace: str = "default") -> list[tuple[Any, ...]]:
    path = store.data.path(f"views/{workspace}.duckdb")
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(query).fetchall()


def test_a_flush_moves_the_tail_and_every_log_is_seen_once_before_and_after(store: Store) -> None:
    ids = add_logs(store, 20) + add_logs(store, 5, workspace_id=2) + add_logs(store, 5)
    own = ids[:20] + ids[25:]
    assert scanned(store) == own[::-1]
    result = flush_logs(store)
    assert (result.rows, result.segments, result.workspaces) == (30, 2, 2)
    assert result.bytes == sum(path.stat().st_size for path in segment_paths(store))
    assert scanned(store) == own[::-1]
    late = add_logs(store, 3)
    assert scanned(store) == (own + late)[::-1]
    assert scanned(store, 2) == ids[20:25][::-1]
    assert flush_logs(store).rows == 3
    assert scanned(store, newest_first=False) == own + late
    assert flush_logs(store).segments == 0


def test_ids_grow_and_are_never_reused_after_a_flush(store: Store) -> None:
    assert add_logs(store, 3) == [1, 2, 3]
    flush_logs(store)
    assert add_logs(store, 2) == [4, 5]


def test_a_log_reads_the_same_from_tail_and_segment(store: Store, who: Principal) -> None:
    hard = {
        "metadata": {"a\x00b": "ü\U0001f600", "": ""},
        "tags": ["\x00", "x"],
        "parameters": {"big": 10**30, "one": 1.0, "nested": [{"k": None}]},
        "price": 1e-7,
        "error_message": "",
    }
    (log_id,) = add_logs(store, 1, score=Score("tone", 7), **hard)
    before = get_request_log(store, who, log_id)
    flush_logs(store)
    assert get_request_log(store, who, log_id) == before
    assert before["scores"] == {"tone": 7}
    assert before["metadata"] == hard["metadata"]


def test_segments_are_zstd_in_small_row_groups_sorted_by_id(store: Store) -> None:
    add_logs(store, 5000)
    flush_logs(store)
    (path,) = segment_paths(store)
    file = pq.ParquetFile(path)
    assert file.metadata.num_row_groups == 2
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    ids = file.read(columns=["id"]).column("id").to_pylist()
    assert ids == sorted(ids)
    assert "MAP" in str(file.schema.to_arrow_schema().field("metadata").type).upper()


def test_the_columns_are_those_that_are_promised(store: Store) -> None:
    def described(name: str) -> list[tuple[str, str]]:
        return [(row[0], row[1]) for row in view(store, f"DESCRIBE {name}")]

    publish_views(store)
    for _ in range(2):  # empty, then with segments
        for name, columns in VIEWS.items():
            assert described(name) == [(column.name, column.type) for column in columns]
        add_logs(store, 2, score=Score("default", 3))
        flush_logs(store)
        publish_views(store, everything=True)


def test_views_show_flushed_logs_scores_and_until_when(store: Store) -> None:
    publish_views(store)
    assert view(store, "SELECT count(*) FROM request_logs") == [(0,)]
    assert view(store, "SELECT last_id, rows FROM request_logs_as_of") == [(None, 0)]
    add_logs(store, 4, score=Score("tone", 7), metadata={"user": "ada"})
    add_logs(store, 1, workspace_id=2)
    flush_logs(store)
    publish_views(store, everything=True)
    assert view(store, "SELECT count(*), max(metadata['user']) FROM request_logs") == [(4, "ada")]
    assert view(store, "SELECT name, sum(score) FROM scores GROUP BY ALL") == [("tone", 28)]
    assert view(store, "SELECT last_id, rows, as_of IS NOT NULL FROM request_logs_as_of") == [(4, 4, True)]


def test_views_are_written_at_most_every_five_seconds_and_stay_due(store: Store) -> None:
    start = store.now()
    store = replace(store, now=lambda: start)
    add_logs(store, 1)
    assert flush_logs(store).published == 1
    add_logs(store, 1)
    assert flush_logs(store).published == 0
    assert flush_plan(store).publish
    later = replace(store, now=lambda: start + timedelta(seconds=6))
    assert publish_views(later) == 1
    assert not flush_plan(later).due
    assert view(store, "SELECT count(*) FROM request_logs") == [(2,)]


def test_an_older_duckdb_can_open_the_view_file(store: Store) -> None:
    publish_views(store)
    head = store.data.path("views/default.duckdb").read_bytes()[:64]
    # magic number, then the version of the storage format: 64 is what DuckDB 1.0 writes
    assert head[8:12] == b"DUCK"
    assert int.from_bytes(head[12:20], "little") == 64


def test_a_flush_is_due_by_age_or_by_size(store: Store) -> None:
    start = store.now()
    store = replace(store, now=lambda: start)
    assert not flush_plan(store).due
    add_logs(store, 1)
    assert not flush_plan(store).flush
    assert flush_plan(replace(store, now=lambda: start + timedelta(seconds=30))).flush
    small = replace(store, settings=replace(store.settings, flush_bytes=100))
    assert flush_plan(small).flush
    flush_logs(small)
    assert not flush_plan(small).due


def test_two_flushes_at_once_claim(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add_logs(store, 3)
    write = log_flush.write_log_segments

    def meanwhile(*args: Any, **options: Any) -> Any:
        with pytest.raises(LeaseRefused):
            flush_logs(store)
        return write(*args, **options)

    monkeypatch.setattr(log_flush, "write_log_segments", meanwhile)
    assert flush_logs(store).rows == 3
    assert scanned(store) == [3, 2, 1]


def test_a_flush_that_lost_its_lease_publishes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = add_logs(store, 3)
    late = replace(store, now=lambda: store.now() + timedelta(minutes=5))
    write = log_flush.write_log_segments

    def overtaken(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(log_flush, "write_log_segments", write)
        flush_logs(late)
        return write(*args, **options)

    monkeypatch.setattr(log_flush, "write_log_segments", overtaken)
    with pytest.raises(LeaseRefused):
        flush_logs(store)
    assert scanned(store) == ids[::-1]
    assert len(segment_paths(store)) == 1


@pytest.mark.parametrize("place", ["write_log_segments", "insert_segments", "move_flushed", "trim_tail"])
def test_a_crash_anywhere_leaves_orphans_never_lies(
    store: Store, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    ids = add_logs(store, 10)
    whole = getattr(log_flush, place)

    class Crash(Exception):
        pass

    def crash(*args: Any, **options: Any) -> Any:
        whole(*args, **options)
        raise Crash

    monkeypatch.setattr(log_flush, place, crash)
    with pytest.raises(Crash):
        flush_logs(store)
    assert scanned(store) == ids[::-1]
    monkeypatch.setattr(log_flush, place, whole)
    flush_logs(store)
    assert scanned(store) == ids[::-1]
    assert find_segment_faults(store) == {}


def test_a_full_disk_fails_the_flush_and_space_heals_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = add_logs(store, 10)

    def full(_path: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("storage.engine.data_root.sync_file", full)
        with pytest.raises(Unavailable):
            flush_logs(store)
    assert scanned(store) == ids[::-1]
    assert flush_logs(store).rows == 10
    assert scanned(store) == ids[::-1]


def test_orphans_are_swept_after_a_while_and_named_files_stay(store: Store) -> None:
    add_logs(store, 2)
    flush_logs(store)
    orphan = store.data.path("logs/1/request_logs-1-2-0.parquet")
    orphan.write_bytes(b"x")
    assert sweep_log_files(store) == 0
    later = replace(store, now=lambda: store.now() + timedelta(hours=2))
    assert sweep_log_files(later) == 1
    assert not orphan.exists()
    assert find_segment_faults(store) == {}
    assert scanned(store) == [2, 1]


def test_a_corrupted_a_short_and_a_missing_segment_are_found(store: Store) -> None:
    for _ in range(3):
        add_logs(store, 5)
        flush_logs(store)
    corrupted, short, missing = segment_paths(store)
    content = bytearray(corrupted.read_bytes())
    content[len(content) // 2] ^= 1
    corrupted.write_bytes(content)
    short.write_bytes(short.read_bytes()[:-1])
    missing.unlink()
    faults = find_segment_faults(store)
    assert len(faults) == 3
    assert "checksum" in faults[str(corrupted.relative_to(store.data.path("")))]


def test_a_tail_that_another_flush_moved_is_left_alone(store: Store) -> None:
    add_logs(store, 2)
    with store.logs.transaction() as connection:
        assert not move_flushed(connection, base=1, through=2, size=10)
        assert move_flushed(connection, base=0, through=2, size=10)


def test_scans_filter_limit_and_keep_the_order_of_given_ids(store: Store) -> None:
    for number in (1, 2):
        add_logs(store, 10, prompt_id=7, prompt_name="p", prompt_version_number=number)
        flush_logs(store)
    add_logs(store, 10, prompt_id=8, prompt_name="q", prompt_version_number=1)
    assert scanned(store, prompt_id=7, prompt_version_number=2) == list(range(20, 10, -1))
    assert scanned(store, prompt_name="q", limit=3) == [30, 29, 28]
    assert scanned(store, limit=12) == list(range(30, 18, -1))
    assert scanned(store, ids=(25, 3, 99, 12, 3, 30)) == [25, 3, 12, 30]
    assert scanned(store, ids=(25, 3, 12), prompt_id=7) == [3, 12]
    assert scanned(store, ids=tuple(range(30, 0, -1)), limit=8) == list(range(30, 22, -1))
    assert scanned(store, 2) == []
