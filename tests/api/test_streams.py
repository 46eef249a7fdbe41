"""Streams of answers: few pieces are made at once, few answers are open, and who takes nothing is let go."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from api import streams
from api.streams import Stream, Streams
from storage.domain.errors import Unavailable


class Counted:
    """Pieces that know how many threads make some at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self.most = 0

    def pieces(self, mark: bytes) -> Iterator[bytes]:
        for _ in range(3):
            with self._lock:
                self._now += 1
                self.most = max(self.most, self._now)
            time.sleep(0.01)
            with self._lock:
                self._now -= 1
            yield mark * 100_000


async def whole(opened: Streams, pieces: Iterator[bytes]) -> bytes:
    found = [chunk async for chunk in opened.chunks(pieces)]
    assert max(map(len, found)) <= 65_536
    return b"".join(found)


def test_each_answer_is_whole_and_two_pieces_are_made_at_once() -> None:
    counted = Counted()

    async def all_at_once() -> list[bytes]:
        opened = Streams()
        try:
            marks = (b"%d" % number for number in range(8))
            return await asyncio.gather(*(whole(opened, counted.pieces(mark)) for mark in marks))
        finally:
            opened.close()

    assert asyncio.run(all_at_once()) == [b"%d" % number * 300_000 for number in range(8)]
    assert counted.most == 2


def test_beyond_those_that_may_be_open_answers_are_refused_until_one_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "_MOST_OPEN", 1)

    async def one_then_another() -> None:
        opened = Streams()
        opened.check_room()
        chunks = opened.chunks(Counted().pieces(b"a"))
        await anext(chunks)
        with pytest.raises(Unavailable, match="under way"):
            opened.check_room()
        await chunks.aclose()  # type: ignore[attr-defined]  # as the framework does where a caller goes away
        opened.check_room()
        opened.close()

    asyncio.run(one_then_another())


def test_a_caller_who_takes_nothing_frees_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_STALL_S", 0.05)

    async def stalled() -> None:
        opened = Streams()

        async def never(message: Message) -> None:
            if message["type"] == "http.response.body":
                await asyncio.Event().wait()

        async def silence() -> Message:
            await asyncio.Event().wait()
            return {}

        answer = Stream(opened.chunks(Counted().pieces(b"a")))
        with pytest.raises(ClientDisconnect):
            await answer({"type": "http", "asgi": {"spec_version": "2.4"}}, silence, never)
        await asyncio.get_running_loop().shutdown_asyncgens()
        assert opened._open == 0
        opened.close()

    asyncio.run(stalled())
