"""Writers of the tail: group commit, refusals that lose nothing else, hand-over between processes."""

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from storage.domain.errors import Conflict, Unavailable
from storage.domain.request_logs import Score, to_us
from storage.engine import log_tail
from storage.engine.log_body import encode_body
from storage.engine.log_relay import RemoteLogWriter, serve_log_writer
from storage.engine.log_schema import idempotency_keys, log_scores
from storage.engine.log_schema import log_tail as tail_table
from storage.engine.log_tail import LocalLogWriter, LogWriter
from storage.engine.rows.log_tail import Entry, Idempotency
from storage.store import Store
from tests.logs import stored_fields


def entry(store: Store, **changes: Any) -> Entry:
    return Entry(1, to_us(store.now()), encode_body(stored_fields(**changes)))


def keyed(store: Store, key: str, said: bytes = b"a") -> Entry:
    body = encode_body(stored_fields())
    return Entry(1, to_us(store.now()), body, Score("tone", 1), Idempotency(key, said * 32))


def stored_ids(store: Store) -> list[int]:
    with store.logs.read() as connection:
        return list(connection.execute(sa.select(tail_table.c.id).order_by(tail_table.c.id)).scalars())


def with_local(store: Store, work: Callable[[LocalLogWriter], Awaitable[None]], **limits: int) -> None:
    async def run() -> None:
        writer = LocalLogWriter(store.logs, **limits)
        try:
            await work(writer)
        finally:
            await writer.close()

    asyncio.run(run())


def with_relay(store: Store, path: Path, work: Callable[[RemoteLogWriter], Awaitable[None]]) -> None:
    async def relayed(local: LocalLogWriter) -> None:
        end = await serve_log_writer(local, path)
        remote = RemoteLogWriter(path)
        try:
            await work(remote)
        finally:
            await remote.close()
            await end()

    with_local(store, relayed)


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path that is short enough for a socket."""
    path = tmp_path_factory.mktemp("s") / "logs.sock"
    assert len(str(path)) < 100
    return path


def test_many_at_once_share_commits_and_each_gets_its_own_id(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[int] = []
    append = log_tail.append_group

    def counted(connection: Any, entries: Any) -> Any:
        groups.append(len(entries))
        return append(connection, entries)

    monkeypatch.setattr(log_tail, "append_group", counted)

    async def work(writer: LogWriter) -> None:
        ids = await asyncio.gather(*(writer.append(entry(store)) for _ in range(300)))
        assert sorted(ids) == list(range(1, 301))

    with_local(store, work)
    assert stored_ids(store) == list(range(1, 301))
    assert len(groups) < 30


def test_no_answer_comes_before_its_groups_commit(store: Store) -> None:
    committing, may_commit = threading.Event(), threading.Event()

    def hold(_connection: Any) -> None:
        committing.set()
        assert may_commit.wait(10)

    async def work(writer: LogWriter) -> None:
        sa.event.listen(store.logs._writer, "commit", hold)
        answer = asyncio.ensure_future(writer.append(entry(store)))
        await asyncio.to_thread(committing.wait, 10)
        await asyncio.sleep(0.05)
        assert not answer.done()
        may_commit.set()
        assert await answer == 1
        sa.event.remove(store.logs._writer, "commit", hold)

    with_local(store, work)


@pytest.mark.parametrize(
    "failure",
    [
        OperationalError("COMMIT", {}, sqlite3.OperationalError("disk I/O error")),
        OperationalError("COMMIT", {}, sqlite3.OperationalError("database or disk is full")),
        RuntimeError("a bug"),
    ],
)
def test_a_failing_commit_refuses_its_group_and_the_next_one_is_written(
    store: Store, failure: Exception
) -> None:
    def fail(_connection: Any) -> None:
        raise failure

    async def work(writer: LogWriter) -> None:
        sa.event.listen(store.logs._writer, "commit", fail)
        refused = await asyncio.gather(
            *(writer.append(entry(store)) for _ in range(3)), return_exceptions=True
        )
        assert [type(result) for result in refused] == [Unavailable] * 3
        sa.event.remove(store.logs._writer, "commit", fail)
        assert isinstance(await writer.append(entry(store)), int)

    with_local(store, work)
    assert len(stored_ids(store)) == 1


def test_a_full_queue_refuses_instead_of_growing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    going, may_go = threading.Event(), threading.Event()
    append = log_tail.append_group

    def slow(connection: Any, entries: Any) -> Any:
        going.set()
        assert may_go.wait(10)
        return append(connection, entries)

    monkeypatch.setattr(log_tail, "append_group", slow)

    async def work(writer: LogWriter) -> None:
        first = asyncio.ensure_future(writer.append(entry(store)))
        await asyncio.to_thread(going.wait, 10)
        waiting = [asyncio.ensure_future(writer.append(entry(store))) for _ in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            await writer.append(entry(store))
        may_go.set()
        assert await asyncio.gather(first, *waiting) == [1, 2, 3, 4, 5, 6]

    with_local(store, work, max_waiting=5)


def test_what_waits_is_written_before_a_writer_closes_and_then_it_refuses(store: Store) -> None:
    async def run() -> None:
        writer = LocalLogWriter(store.logs)
        waiting = [asyncio.ensure_future(writer.append(entry(store))) for _ in range(20)]
        await asyncio.sleep(0)
        await writer.close()
        assert sorted(await asyncio.gather(*waiting)) == list(range(1, 21))
        with pytest.raises(Unavailable):
            await writer.append(entry(store))

    asyncio.run(run())


def test_repeats_within_one_group_are_written_once(store: Store) -> None:
    async def work(writer: LogWriter) -> None:
        sent = [keyed(store, "k"), keyed(store, "k"), keyed(store, "k", b"b"), keyed(store, "other")]
        results = await asyncio.gather(*map(writer.append, sent), return_exceptions=True)
        assert results[0] == results[1]
        assert isinstance(results[2], Conflict)
        assert isinstance(results[3], int)
        assert await writer.append(keyed(store, "k")) == results[0]

    with_local(store, work)
    assert len(stored_ids(store)) == 2
    with store.logs.read() as connection:
        for table in (log_scores, idempotency_keys):
            assert connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() == 2


def test_a_key_counts_for_a_day(store: Store) -> None:
    async def work(writer: LogWriter) -> None:
        now = keyed(store, "k")
        day_us = 86_400_000_000
        old = Entry(1, now.created_us - day_us, now.body, None, now.idempotency)
        younger = Entry(1, now.created_us - 1, now.body, None, now.idempotency)
        assert await writer.append(old) == 1
        assert await writer.append(younger) == 1
        assert await writer.append(now) == 2
        assert await writer.append(now) == 2

    with_local(store, work)


def test_a_remote_writer_hands_over_scores_keys_and_refusals(store: Store, short: Path) -> None:
    async def work(writer: LogWriter) -> None:
        ids = await asyncio.gather(*(writer.append(entry(store)) for _ in range(50)))
        assert sorted(ids) == list(range(1, 51))
        first = await writer.append(keyed(store, "k"))
        assert await writer.append(keyed(store, "k")) == first
        with pytest.raises(Conflict, match="idempotency key"):
            await writer.append(keyed(store, "k", b"b"))

    with_relay(store, short, work)
    assert len(stored_ids(store)) == 51


def test_a_remote_writer_refuses_while_the_other_process_is_away_and_goes_on_after(
    store: Store, short: Path
) -> None:
    async def run() -> None:
        remote = RemoteLogWriter(short)
        with pytest.raises(Unavailable, match="nothing was logged"):
            await remote.append(entry(store))
        local = LocalLogWriter(store.logs)
        end = await serve_log_writer(local, short)
        assert await remote.append(entry(store)) == 1
        await remote.close()
        await end()
        with pytest.raises(Unavailable):
            await remote.append(entry(store))
        end = await serve_log_writer(local, short)
        assert await remote.append(entry(store)) == 2
        await remote.close()
        await end()
        await local.close()

    asyncio.run(run())


def test_a_connection_that_breaks_answers_all_who_wait(
    store: Store, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async def break_off(_reader: asyncio.StreamReader, stream: asyncio.StreamWriter) -> None:
            await asyncio.sleep(0.05)
            stream.close()

        server = await asyncio.start_unix_server(break_off, short)
        remote = RemoteLogWriter(short)
        results = await asyncio.gather(
            *(remote.append(entry(store)) for _ in range(3)), return_exceptions=True
        )
        assert [type(result) for result in results] == [Unavailable] * 3
        await remote.close()
        server.close()

    asyncio.run(run())
