"""Readers that look again and again while logs are written, flushed, compacted, published see each once."""

import threading
import time
from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from storage import log_flush
from storage.domain.errors import NotFound
from storage.domain.keys import Principal
from storage.domain.request_logs import LogFilter
from storage.log_compaction import compact_logs
from storage.log_flush import flush_logs, publish_views
from storage.request_logs import get_request_log, scan_request_logs
from storage.sql import open_ad_hoc
from storage.store import Store
from tests.logs import add_logs

SECONDS = 3.0


@pytest.fixture
def last(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The last id that was answered; it moves while the test runs."""
    monkeypatch.setattr("storage.domain.log_compaction.MERGE_FILES", 3)
    return add_logs(store, 1)


def _loop(stop: threading.Event, failures: list[BaseException], work: Callable[[], object]) -> None:
    try:
        while not stop.is_set():
            work()
    except BaseException as error:  # noqa: BLE001 - the test's thread raises it
        failures.append(error)


def while_busy(store: Store, last: list[int], look: Callable[[], object]) -> int:
    """Run a reader while others write and flush; return how often it looked."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def write() -> None:
        last[0] = add_logs(store, 7)[-1]
        time.sleep(0.002)

    def flush() -> None:
        flush_logs(store)

    merged = [0]

    def compact() -> None:
        merged[0] += compact_logs(store).files_before
        time.sleep(0.05)

    busy = (write, flush, compact)
    threads = [threading.Thread(target=_loop, args=(stop, failures, work)) for work in busy]
    for thread in threads:
        thread.start()
    looks = 0
    try:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and not failures:
            look()
            looks += 1
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    assert merged[0] > 0
    return looks


def test_a_scan_sees_every_answered_log_once_in_order(store: Store, last: list[int]) -> None:
    def look() -> None:
        answered = last[0]
        ids = [i for b in scan_request_logs(store, 1, LogFilter()) for i in b.column("id").to_pylist()]
        assert ids == list(range(len(ids), 0, -1))
        assert len(ids) >= answered

    assert while_busy(store, last, look) > 3


def test_a_log_can_be_read_by_id_at_every_moment(store: Store, who: Principal, last: list[int]) -> None:
    def look() -> None:
        for log_id in {last[0], max(1, last[0] - 20), 1}:
            assert get_request_log(store, who, log_id)["id"] == log_id
        with pytest.raises(NotFound):
            get_request_log(store, who, last[0] + 1_000_000)

    assert while_busy(store, last, look) > 3


def test_sql_counts_every_answered_log_once(store: Store, last: list[int]) -> None:
    def look() -> None:
        answered = last[0]
        with open_ad_hoc(store, "default") as views:
            query = "SELECT count(*), count(DISTINCT id), max(id) FROM request_logs"
            rows, ids, highest = views._connection.execute(query).fetchone() or (0, 0, 0)
        assert rows == ids == highest >= answered

    assert while_busy(store, last, look) > 3


def test_a_published_file_never_shows_a_log_twice_or_leaves_one_out(
    store: Store, last: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_flush, "PUBLISH_EVERY_S", 0.0)
    publish_views(store)
    seen = [0]

    def look() -> None:
        path = str(store.data.path("views/default.duckdb"))
        with duckdb.connect(path, read_only=True) as connection:
            found: Any = connection.execute(
                "SELECT count(*), count(DISTINCT id) FROM request_logs"
            ).fetchone()
            as_of: Any = connection.execute("SELECT rows, last_id FROM request_logs_as_of").fetchone()
        assert found[0] == found[1] == as_of[0] == (as_of[1] or 0)
        assert found[0] >= seen[0]
        seen[0] = found[0]

    assert while_busy(store, last, look) > 3
    assert seen[0] > 0
