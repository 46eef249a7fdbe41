"""Writers of the tail: group commit, refusals that lose nothing else, hand-over between processes."""

import asyncio
import random
import socket
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError

from storage.domain.errors import Conflict, Unavailable
from storage.domain.log_pace import MOST_HELD_BACK_S
from storage.domain.request_logs import Score, to_us
from storage.engine import log_writer
from storage.engine.log_body import encode_body
from storage.engine.log_schema import idempotency_keys, log_scores
from storage.engine.log_schema import log_tail as tail_table
from storage.engine.log_sender import LogSender, connect_unix
from storage.engine.log_wire import Outcomes, Submissions, pack_outcome, pack_submission
from storage.engine.log_writer import LogWriter
from storage.engine.rows.log_tail import Entry, Idempotency, Submission
from storage.log_flush import flush_logs
from storage.log_writing import writing_beside
from storage.store import Store
from tests.logs import stored_fields


def entry(store: Store, **changes: Any) -> Submission:
    return Submission((Entry(1, to_us(store.now()), encode_body(stored_fields(**changes))),))


def keyed(store: Store, key: str, said: bytes = b"a", *, logs: int = 1) -> Submission:
    body = encode_body(stored_fields())
    entries = (Entry(1, to_us(store.now()), body, Score("tone", 1)),) * logs
    return Submission(entries, Idempotency(key, said * 32))


def stored_ids(store: Store) -> list[int]:
    with store.logs.read() as connection:
        return list(connection.execute(sa.select(tail_table.c.id).order_by(tail_table.c.id)).scalars())


def with_sender(store: Store, work: Callable[[LogSender], Awaitable[None]], **limits: Any) -> None:
    async def run() -> None:
        with writing_beside(store.logs, flush_bytes=store.settings.flush_bytes) as connection:
            sender = LogSender(connection.dup, **limits)
            try:
                await work(sender)
            finally:
                await sender.close()

    asyncio.run(run())


@contextmanager
def writing(store: Store, listener: socket.socket) -> Iterator[None]:
    """Write for all who connect to a listener, as the process of its own does."""
    writer = LogWriter(store.logs, listener, flush_bytes=store.settings.flush_bytes)
    thread = threading.Thread(target=writer.run)
    thread.start()
    try:
        yield
    finally:
        writer.stop()
        thread.join()


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.setblocking(False)
        yield listener


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
    append = log_writer.append_group

    def counted(connection: Any, entries: Any) -> Any:
        groups.append(len(entries))
        return append(connection, entries)

    monkeypatch.setattr(log_writer, "append_group", counted)

    async def work(sender: LogSender) -> None:
        ids = await asyncio.gather(*(sender.append(entry(store)) for _ in range(300)))
        assert sorted(ids) == list(range(1, 301))

    with_sender(store, work)
    assert stored_ids(store) == list(range(1, 301))
    assert len(groups) < 30


def test_callers_are_held_back_while_the_tail_is_full(store: Store) -> None:
    log = entry(store)
    full = replace(store, settings=replace(store.settings, flush_bytes=40 * log.size))

    async def work(sender: LogSender) -> None:
        await asyncio.gather(*(sender.append(log) for _ in range(40)))
        # what waits is looked at now and then
        await asyncio.sleep(0.05)
        started = time.monotonic()
        for _ in range(10):
            await sender.append(log)
        # each but the first waits for what came before it
        assert time.monotonic() - started >= 9 * MOST_HELD_BACK_S

    with_sender(full, work)


def test_no_answer_comes_before_its_groups_commit(store: Store) -> None:
    committing, may_commit = threading.Event(), threading.Event()

    def hold(_connection: Any) -> None:
        committing.set()
        assert may_commit.wait(10)

    async def work(sender: LogSender) -> None:
        sa.event.listen(store.logs._writer, "commit", hold)
        answer = asyncio.ensure_future(sender.append(entry(store)))
        await asyncio.to_thread(committing.wait, 10)
        await asyncio.sleep(0.05)
        assert not answer.done()
        may_commit.set()
        assert await answer == 1
        sa.event.remove(store.logs._writer, "commit", hold)

    with_sender(store, work)


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

    async def work(sender: LogSender) -> None:
        sa.event.listen(store.logs._writer, "commit", fail)
        refused = await asyncio.gather(
            *(sender.append(entry(store)) for _ in range(3)), return_exceptions=True
        )
        assert [type(result) for result in refused] == [Unavailable] * 3
        sa.event.remove(store.logs._writer, "commit", fail)
        assert isinstance(await sender.append(entry(store)), int)

    with_sender(store, work)
    assert len(stored_ids(store)) == 1


def test_a_full_queue_refuses_instead_of_growing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    going, may_go = threading.Event(), threading.Event()
    append = log_writer.append_group

    def slow(connection: Any, entries: Any) -> Any:
        going.set()
        assert may_go.wait(10)
        return append(connection, entries)

    monkeypatch.setattr(log_writer, "append_group", slow)

    async def work(sender: LogSender) -> None:
        first = asyncio.ensure_future(sender.append(entry(store)))
        await asyncio.to_thread(going.wait, 10)
        waiting = [asyncio.ensure_future(sender.append(entry(store))) for _ in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            await sender.append(entry(store))
        may_go.set()
        assert await asyncio.gather(first, *waiting) == [1, 2, 3, 4, 5, 6]

    with_sender(store, work, max_waiting=6)


def test_what_waits_is_written_before_a_sender_closes_and_then_it_refuses(store: Store) -> None:
    async def work(sender: LogSender) -> None:
        waiting = [asyncio.ensure_future(sender.append(entry(store))) for _ in range(20)]
        await asyncio.sleep(0)
        await sender.close()
        assert sorted(await asyncio.gather(*waiting)) == list(range(1, 21))
        with pytest.raises(Unavailable):
            await sender.append(entry(store))

    with_sender(store, work)


def test_repeats_within_one_group_are_written_once(store: Store) -> None:
    async def work(sender: LogSender) -> None:
        sent = [keyed(store, "k"), keyed(store, "k"), keyed(store, "k", b"b"), keyed(store, "other")]
        results = await asyncio.gather(*map(sender.append, sent), return_exceptions=True)
        assert results[0] == results[1]
        assert isinstance(results[2], Conflict)
        assert isinstance(results[3], int)
        assert await sender.append(keyed(store, "k")) == results[0]

    with_sender(store, work)
    assert len(stored_ids(store)) == 2
    with store.logs.read() as connection:
        for table in (log_scores, idempotency_keys):
            assert connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() == 2


def test_a_key_counts_for_a_day(store: Store) -> None:
    async def work(sender: LogSender) -> None:
        now = keyed(store, "k")
        day_us = 86_400_000_000
        (log,) = now.entries
        old = replace(now, entries=(replace(log, created_us=log.created_us - day_us),))
        younger = replace(now, entries=(replace(log, created_us=log.created_us - 1),))
        assert await sender.append(old) == 1
        assert await sender.append(younger) == 1
        assert await sender.append(now) == 2
        assert await sender.append(now) == 2

    with_sender(store, work)


def test_the_logs_of_one_submission_follow_one_another_and_are_written_whole(store: Store) -> None:
    async def work(sender: LogSender) -> None:
        sent = [keyed(store, f"k{n}", logs=n) for n in (700, 1, 3)]
        firsts = await asyncio.gather(*map(sender.append, sent))
        again = await asyncio.gather(*map(sender.append, sent))
        assert again == firsts
        taken = [range(first, first + n) for first, n in zip(firsts, (700, 1, 3), strict=True)]
        assert sorted(chain.from_iterable(taken)) == list(range(1, 705))

    with_sender(store, work)
    assert stored_ids(store) == list(range(1, 705))


def test_submissions_larger_than_the_socket_arrive_whole(store: Store) -> None:
    async def work(sender: LogSender) -> None:
        large = [entry(store, function_name=str(n) * 3_000_000) for n in range(5)]
        assert sorted(await asyncio.gather(*map(sender.append, large))) == [1, 2, 3, 4, 5]

    with_sender(store, work)
    with store.logs.read() as connection:
        sizes = connection.execute(sa.select(sa.func.length(tail_table.c.body))).scalars()
        assert all(size > 3_000_000 for size in sizes)


def test_the_writer_removes_what_was_flushed_while_it_writes_and_when_nothing_comes(store: Store) -> None:
    async def work(sender: LogSender) -> None:
        await asyncio.gather(*(sender.append(entry(store)) for _ in range(700)))
        await asyncio.to_thread(flush_logs, store)
        for _ in range(3):
            await asyncio.sleep(0.03)
            await sender.append(entry(store))
        assert len(await asyncio.to_thread(stored_ids, store)) < 700
        await asyncio.to_thread(flush_logs, store)
        async with asyncio.timeout(20):
            while await asyncio.to_thread(stored_ids, store):  # noqa: ASYNC110  # another thread empties it
                await asyncio.sleep(0.05)
        assert await sender.append(entry(store)) == 704

    with_sender(store, work)
    assert stored_ids(store) == [704]


def test_another_process_takes_scores_keys_and_tells_refusals(store: Store, short: Path) -> None:
    async def work() -> None:
        sender = LogSender(partial(connect_unix, short))
        ids = await asyncio.gather(*(sender.append(entry(store)) for _ in range(50)))
        assert sorted(ids) == list(range(1, 51))
        first = await sender.append(keyed(store, "k"))
        assert await sender.append(keyed(store, "k")) == first
        with pytest.raises(Conflict, match="idempotency key"):
            await sender.append(keyed(store, "k", b"b"))
        await sender.close()

    with listening(short) as listener, writing(store, listener):
        asyncio.run(work())
    assert len(stored_ids(store)) == 51


def test_whenever_much_was_answered_for_it_is_told(store: Store) -> None:
    size = entry(store).size
    told: list[int] = []

    async def work(sender: LogSender) -> None:
        for number in range(1, 8):
            await sender.append(entry(store))
            told.append(len(told_now))
            assert number == len(told)

    told_now: list[None] = []
    with_sender(store, work, on_much=lambda: told_now.append(None), much_bytes=3 * size)
    assert told == [0, 0, 1, 1, 1, 2, 2]


def test_without_a_listener_nothing_is_logged_and_a_restarted_writer_takes_what_waits(
    store: Store, short: Path
) -> None:
    async def work() -> None:
        sender = LogSender(partial(connect_unix, short))
        with pytest.raises(Unavailable, match="nothing was logged"):
            await sender.append(entry(store))
        with listening(short) as listener:
            # the supervisor holds the socket while the writer is being restarted: callers wait
            waiting = asyncio.ensure_future(sender.append(entry(store)))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            with writing(store, listener):
                assert await waiting == 1
                await sender.close()

    asyncio.run(work())


def test_a_connection_that_breaks_answers_all_who_wait_and_the_next_one_is_new(
    store: Store, short: Path
) -> None:
    async def work(listener: socket.socket) -> None:
        sender = LogSender(partial(connect_unix, short))
        lost = [asyncio.ensure_future(sender.append(entry(store))) for _ in range(3)]
        await asyncio.sleep(0.05)
        broken, _ = listener.accept()
        broken.close()
        results = await asyncio.gather(*lost, return_exceptions=True)
        assert [type(result) for result in results] == [Unavailable] * 3
        with writing(store, listener):
            assert await sender.append(entry(store)) == 1
            await sender.close()

    with listening(short) as listener:
        asyncio.run(work(listener))
    assert stored_ids(store) == [1]


def test_a_writer_that_does_not_answer_is_given_up(store: Store, short: Path) -> None:
    async def work() -> None:
        sender = LogSender(partial(connect_unix, short), answer_within_s=0.1)
        with pytest.raises(Unavailable, match="not known"):
            await sender.append(entry(store))
        await sender.close()

    with listening(short):
        asyncio.run(work())


@given(st.lists(st.integers(0, 40), min_size=1), st.integers(1, 9), st.randoms(use_true_random=False))
def test_submissions_and_outcomes_survive_any_cut_of_the_stream(
    sizes: list[int], pieces: int, rng: random.Random
) -> None:
    sent = [
        Submission(
            tuple(
                Entry(n, -n, bytes([n]) * size, Score("s", n) if size % 3 else None)
                for size in sizes[: n + 1]
            ),
            Idempotency("key", bytes(32)) if n % 2 else None,
        )
        for n in range(3)
    ]
    results: list[int | Conflict | Unavailable] = [7, Conflict("taken"), Unavailable("full")]
    stream = b"".join(b"".join(pack_submission(n, one)) for n, one in enumerate(sent))
    back = b"".join(pack_outcome(n, one) for n, one in enumerate(results))
    submissions, outcomes = Submissions(), Outcomes()
    assert [found for piece in cut(stream, pieces, rng) for found in submissions.feed(piece)] == list(
        enumerate(sent)
    )
    told = [found for piece in cut(back, pieces, rng) for found in outcomes.feed(piece)]
    assert [(n, type(result), str(result)) for n, result in told] == [
        (n, type(result), str(result)) for n, result in enumerate(results)
    ]


def cut(stream: bytes, pieces: int, rng: random.Random) -> list[bytes]:
    places = sorted(rng.randrange(len(stream) + 1) for _ in range(pieces))
    return [stream[a:b] for a, b in pairwise([0, *places, len(stream)])]
