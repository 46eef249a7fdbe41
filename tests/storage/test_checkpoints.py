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


def write(store: Store, logs: int) -> None:
    async def append() -> None:
        with writing_beside(store.logs) as connection:
            sender = LogSender(connection.dup)
            log = Submission((Entry(1, 1, b"x" * 10_000),))
            for _ in range(logs // 50):
                await asyncio.gather(*(sender.append(log) for _ in range(50)))
            await asyncio.sleep(0.2)
            await sender.close()

    asyncio.run(append())


def test_the_log_stays_small_while_much_is_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "_EVERY_BYTES", 2_000_000)
    monkeypatch.setattr(checkpoints, "_MOST_PAGES", 1000)
    # whoever closes the file last removes the log: a second connection keeps it for a look
    with closing(sqlite3.connect(str(store.logs.sqlite_path))) as held:
        held.execute("SELECT count(*) FROM log_tail").fetchall()
        write(store, 2500)
        # two pages a log: without it 41 MB
        assert Path(f"{store.logs.sqlite_path}-wal").stat().st_size < 30_000_000
        assert held.execute("SELECT count(*) FROM log_tail").fetchone() == (2500,)


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
