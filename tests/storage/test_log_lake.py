"""One DuckDB for all searches of a process: few at once, none without end."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from storage.domain.errors import Unavailable
from storage.engine import log_lake
from storage.engine.log_lake import LogLake

ENDLESS = "SELECT sum(a.range * b.range % 7) FROM range(1000000) a, range(1000000) b"


def test_a_search_without_end_is_ended() -> None:
    lake = LogLake()
    with pytest.raises(Unavailable, match=r"longer than 0\.2 seconds"), lake.cursor(limit_s=0.2) as cursor:
        cursor.execute(ENDLESS)
    with lake.cursor() as cursor:
        assert cursor.execute("SELECT 1").fetchall() == [(1,)]
    lake.close()


def test_searches_beyond_the_limit_wait_and_beyond_the_queue_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_lake, "AT_ONCE", 1)
    monkeypatch.setattr(log_lake, "MOST_WAITING", 1)
    monkeypatch.setattr(log_lake, "WAIT_S", 0.1)
    lake, inside, leave = LogLake(), Event(), Event()

    def hold() -> None:
        with lake.cursor():
            inside.set()
            leave.wait(10)

    holder = Thread(target=hold)
    holder.start()
    inside.wait(10)
    with pytest.raises(Unavailable, match="at work"), lake.cursor():
        pass
    with lake.glance() as cursor:
        assert cursor.execute("SELECT 1").fetchall() == [(1,)]
    leave.set()
    holder.join()
    with lake.cursor() as cursor:
        assert cursor.execute("SELECT 1").fetchall() == [(1,)]
    lake.close()


def test_an_answer_larger_than_memory_and_disk_is_refused_and_the_next_is_given() -> None:
    lake = LogLake()
    with pytest.raises(Unavailable, match="more memory"), lake.cursor() as cursor:
        cursor.execute("SELECT list(range) FROM range(100000000)")
    with lake.cursor() as cursor:
        assert cursor.execute("SELECT 1").fetchall() == [(1,)]
    lake.close()


def _threads() -> set[int]:
    return {int(one.name) for one in Path("/proc/self/task").iterdir()}


def _priorities(threads: set[int]) -> set[int]:
    found = set()
    for one in threads:
        with suppress(ProcessLookupError):  # it has ended meanwhile
            found.add(os.getpriority(os.PRIO_PROCESS, one))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="priority is counted by thread on Linux alone")
def test_the_threads_of_a_search_step_back_and_the_one_that_asks_does_not() -> None:
    own, before = os.getpriority(os.PRIO_PROCESS, 0), _threads()
    lake = LogLake()
    with lake.glance() as connection:
        connection.execute("SELECT sum(i * i) FROM range(100_000) t(i)").fetchall()
        assert _priorities(_threads() - before) == {own + 5}
    lake.close()
    assert os.getpriority(os.PRIO_PROCESS, 0) == own
