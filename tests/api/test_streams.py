"""Streams of answers: few pieces are made at once, few answers are open, and who takes nothing is let go."""

import asyncio
import gc
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


async def silence() -> Message:
    """A caller who stays and says nothing."""
    await asyncio.Event().wait()
    return {}


def answer_of(opened: Streams) -> Stream:
    return Stream(opened, Counted().pieces(b"a"), media_type="text/plain", headers={})


SCOPE = {"type": "http", "asgi": {"spec_version": "2.4"}}


def test_beyond_those_that_may_be_open_answers_are_refused_until_one_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "_MOST_OPEN", 2)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def two_then_another() -> None:
        opened = Streams()
        first, _second = answer_of(opened), answer_of(opened)
        with pytest.raises(Unavailable, match="under way"):
            answer_of(opened)
        await first(SCOPE, silence, send)
        answer_of(opened)
        with pytest.raises(Unavailable, match="under way"):
            answer_of(opened)
        opened.close()

    asyncio.run(two_then_another())
    assert b"".join(message.get("body", b"") for message in sent) == b"a" * 300_000


@pytest.mark.parametrize("goes", [False, True])
def test_a_caller_who_takes_nothing_or_goes_away_frees_its_place_at_once(
    monkeypatch: pytest.MonkeyPatch,
    goes: bool,
) -> None:
    monkeypatch.setattr(streams, "_STALL_S", 0.05)
    monkeypatch.setattr(streams, "_MOST_OPEN", 1)
    ended = threading.Event()

    def pieces() -> Iterator[bytes]:
        try:
            while True:
                yield b"a" * 100_000
        finally:
            ended.set()

    async def never(message: Message) -> None:
        if message["type"] == "http.response.body":
            if goes:
                raise OSError
            await asyncio.Event().wait()

    async def stalled() -> None:
        opened = Streams()
        gc.disable()  # as good as: the service collects seldom
        try:
            answer = Stream(opened, pieces(), media_type="text/plain", headers={})
            with pytest.raises(ClientDisconnect) as gone:
                await answer(SCOPE, silence, never)
            # also while the exception and its frames are there
            assert await asyncio.to_thread(ended.wait, 10)
            assert gone.traceback
            answer_of(opened)
        finally:
            gc.enable()
        opened.close()

    asyncio.run(stalled())


def test_what_a_caller_left_behind_while_a_piece_was_made_is_let_go_at_once() -> None:
    ended, making = threading.Event(), threading.Event()

    def pieces() -> Iterator[bytes]:
        try:
            yield b"a"
            making.set()
            time.sleep(0.1)
            yield b"b"
        finally:
            ended.set()

    async def leave() -> Message:
        await asyncio.to_thread(making.wait, 10)
        return {"type": "http.disconnect"}

    async def send(_: Message) -> None:
        return

    async def left() -> None:
        opened = Streams()
        gc.disable()  # as good as: the service collects seldom
        try:
            answer = Stream(opened, pieces(), media_type="text/plain", headers={})
            await answer({"type": "http", "asgi": {"spec_version": "2.3"}}, leave, send)
            assert await asyncio.to_thread(ended.wait, 10)
        finally:
            gc.enable()
        opened.close()

    asyncio.run(left())
