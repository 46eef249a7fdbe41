"""Scans give the logs asked for in the order asked for, however files and batches are cut."""

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.domain.errors import Unavailable
from storage.domain.request_logs import LogFilter
from storage.engine import log_scan, log_segments, log_sql, log_tails
from storage.engine.rows.log_segments import LOGS, select_segments
from storage.log_deletion import delete_log
from storage.log_flush import flush_logs
from storage.request_logs import scan_request_logs
from storage.request_search import SearchQuery, search_requests
from storage.store import Store
from storage.tracking import track_metadata
from storage.workspaces import create_workspace, find_key
from tests.conftest import KEY
from tests.logs import add_logs, chat


@pytest.fixture
def filled(store: Store) -> list[int]:
    """Logs of two workspaces in three files and the tail; one is deleted, two are patched."""
    other = create_workspace(store, "other").id
    made = []
    for at in range(4):
        for n in range(7):
            made += add_logs(store, 1, metadata={"n": str(n)}, prompt_id=n % 2 + 1)
            add_logs(store, at, workspace_id=other)
        if at < 3:
            flush_logs(store)
    who = find_key(store, KEY)
    assert who is not None
    for log_id in (made[3], made[-2]):
        track_metadata(store, who.principal, log_id, {"late": "yes"})
    delete_log(store, who.principal, made[20])
    return [log_id for log_id in made if log_id != made[20]]


def batches(store: Store, batch_rows: int = 4, **wanted: Any) -> Iterator[pa.RecordBatch]:
    yield from scan_request_logs(store, 1, LogFilter(**wanted), batch_rows=batch_rows)


def ids(store: Store, batch_rows: int = 4, **wanted: Any) -> list[int]:
    found = list(batches(store, batch_rows, **wanted))
    assert all(batch.num_rows <= batch_rows for batch in found)
    return [log_id for batch in found for log_id in batch.column("id").to_pylist()]


@pytest.mark.parametrize("rows_at_once", [3, 16_384])
def test_every_order_is_kept_however_little_is_read_at_once(
    store: Store, filled: list[int], monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    monkeypatch.setattr(log_scan, "_FEWEST_ROWS", rows_at_once)
    if rows_at_once < 16:
        monkeypatch.setattr(log_scan, "_CHUNK_BYTES", 1)
        monkeypatch.setattr(log_scan, "_SCATTERED_BYTES", 1)
    scattered = random.Random(1).sample(filled, len(filled))
    assert ids(store, newest_first=False) == filled
    assert ids(store) == filled[::-1]
    assert ids(store, limit=11) == filled[::-1][:11]
    assert ids(store, newest_first=False, limit=1) == filled[:1]
    for wanted in (scattered, filled, filled[::-1], filled[::7], [*scattered[:5], 10**9, *scattered[:5]]):
        there = [log_id for log_id in dict.fromkeys(wanted) if log_id < 10**9]
        assert ids(store, ids=tuple(wanted)) == there
        assert ids(store, ids=tuple(wanted), limit=5) == there[:5]
    assert ids(store, ids=()) == []
    some = [row for batch in batches(store, prompt_id=2) for row in batch.to_pylist()]
    assert {row["prompt_id"] for row in some} == {2}
    late = [
        row["id"]
        for batch in batches(store)
        for row in batch.to_pylist()
        if ("late", "yes") in row["metadata"]
    ]
    assert late == [filled[-2], filled[3]]


def test_a_batch_is_no_larger_than_it_may_be(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_scan, "_BATCH_BYTES", 50_000)
    monkeypatch.setattr(log_scan, "_FETCHED_ROWS", 1)
    made = [log_id for _ in range(9) for log_id in add_logs(store, 1, input=chat("user", "long " * 4_000))]
    flush_logs(store)
    found = list(batches(store, 1_000, newest_first=False))
    assert [batch.num_rows for batch in found] == [3, 3, 3]
    assert [log_id for batch in found for log_id in batch.column("id").to_pylist()] == made


def test_large_logs_are_flushed_searched_and_read_in_small_pieces(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_sql, "PIECE_BYTES", 100_000)
    monkeypatch.setattr(log_tails, "PIECE_BYTES", 100_000)
    monkeypatch.setattr(log_segments, "ROW_GROUP_BYTES", 100_000)
    known = find_key(store, KEY)
    assert known is not None

    def total() -> int:
        return search_requests(store, known.principal, SearchQuery(words=("long",)), page=1, per_page=5).total

    for at in range(1, 6):
        add_logs(store, 7, input=chat("user", "long " * 5_000))
        assert total() == 7 * at
    flush_logs(store)
    add_logs(store, 1, input=chat("user", "long " * 5_000))
    assert total() == 36
    with store.logs.read() as connection:
        (segment,) = select_segments(connection, workspace_id=1, kind=LOGS)
    footer = pq.read_metadata(store.data.path(segment.key))
    assert footer.num_row_groups > 5
    assert ids(store, 100) == list(range(36, 0, -1))


def test_a_tail_beyond_all_bounds_refuses_searches_and_nothing_else(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = find_key(store, KEY)
    assert known is not None
    monkeypatch.setattr(log_tails, "LIMIT_BYTES", 20_000)
    add_logs(store, 3, input=chat("user", "long " * 4_000))
    with pytest.raises(Unavailable, match="wait for their flush"):
        search_requests(store, known.principal, SearchQuery(), page=1, per_page=5)
    flush_logs(store)
    assert search_requests(store, known.principal, SearchQuery(), page=1, per_page=5).total == 3
