"""The write-ahead log of the tail is moved into its database beside the commits, and begun anew in time."""

import asyncio
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from storage.engine import checkpoints
from storage.engine.log_sender import LogSender
from storage.engine.rows.log_tail import Entry, Submission
from storage.log_writing import writing_beside
from storage.store import Store


def begun(store: Store) -> bytes:
    """The two salts in the log's header: others each time that the log is begun anew."""
    return Path(f"{store.logs.sqlite_path}-wal").read_bytes()[16:24]


def write_until_begun_anew(store: Store, most: int) -> int:
    """Write logs without a pause, at most `most` of them; the number written."""

    async def append() -> int:
        with writing_beside(store.logs, flush_bytes=store.settings.flush_bytes) as connection:
            sender = LogSender(connection.dup)
            log = Submission((Entry(1, 1, b"x" * 10_000),))
            await sender.append(log)
            first, written = begun(store), 1
            while begun(store) == first and written < most:
                await asyncio.gather(*(sender.append(log) for _ in range(50)))
                written += 50
            await sender.close()
            return written

    return asyncio.run(append())


def test_the_log_is_begun_anew_while_much_is_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "_EVERY_BYTES", 2_000_000)
    monkeypatch.setattr(checkpoints, "_MOST_PAGES", 1000)
    # whoever closes the file last removes the log: a second connection keeps it for a look
    with closing(sqlite3.connect(str(store.logs.sqlite_path))) as held:
        held.execute("SELECT count(*) FROM log_tail").fetchall()
        # a slow disk's checkpoints fall behind the writer for a while, never for good
        written = write_until_begun_anew(store, most=20_001)
        assert written < 20_001
        assert held.execute("SELECT count(*) FROM log_tail").fetchone() == (written,)


def test_who_reads_for_long_holds_no_writer_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "_EVERY_BYTES", 200_000)
    monkeypatch.setattr(checkpoints, "_MOST_PAGES", 100)
    monkeypatch.setattr(checkpoints, "_FAR_TOO_MANY_PAGES", 10**9)
    tries: list[bool] = []
    begin_anew = checkpoints._begin_anew

    def trying(connection: sqlite3.Connection) -> bool:
        tries.append(begin_anew(connection))
        return tries[-1]

    monkeypatch.setattr(checkpoints, "_begin_anew", trying)
    with closing(sqlite3.connect(str(store.logs.sqlite_path), isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM log_tail").fetchone()
        started = time.monotonic()
        write_until_begun_anew(store, most=501)
        # SQLite itself would wait for the reader five seconds each time, and every writer with it
        assert time.monotonic() - started < 4
        assert tries
        assert not any(tries)
        reader.execute("COMMIT")
        written = write_until_begun_anew(store, most=20_001)
    assert written < 20_001


def test_a_failing_checkpoint_is_told_and_tried_again(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # a folder is no database
    checkpointer = checkpoints.Checkpointer(str(tmp_path))
    for failures in (1, 2):
        checkpointer.wrote(10**9)
        deadline = time.monotonic() + 5
        while len(caplog.records) < failures and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(caplog.records) == failures
    checkpointer.close()
