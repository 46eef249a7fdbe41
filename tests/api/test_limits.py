"""A body is waited for only so long; one that is there is not waited for at all."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from api.errors import BodyTimeout
from api.limits import receive_body
from storage.domain.errors import PayloadTooLarge

Script = list[tuple[float, bytes, bool]]
"""Messages: seconds until each comes, its bytes, whether more follow."""


class Caller:
    """Sends by script; notes how a wait for it ended."""

    def __init__(self, script: Script) -> None:
        self._script = list(script)
        self.ended_by: BaseException | None = None

    async def receive(self) -> Message:
        if not self._script:
            return {"type": "http.disconnect"}
        after_s, body, more = self._script.pop(0)
        try:
            if after_s:
                await asyncio.sleep(after_s / 2)
                await asyncio.sleep(after_s / 2)
        except BaseException as error:
            self.ended_by = error
            raise
        return {"type": "http.request", "body": body, "more_body": more}


def received(caller: Caller, *, most: int = 100, idle_s: float = 0.2) -> bytes:
    return asyncio.run(receive_body(caller.receive, "0", most, idle_s))


def test_what_is_there_is_taken_without_a_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_timer(_seconds: float) -> None:
        raise AssertionError("a timer was set")

    monkeypatch.setattr(asyncio, "timeout", no_timer)
    assert received(Caller([(0, b"one ", True), (0, b"two", False)])) == b"one two"


def test_what_comes_in_time_is_waited_for() -> None:
    assert received(Caller([(0.05, b"late ", True), (0, b"and ", True), (0.05, b"later", False)])) == (
        b"late and later"
    )


def test_silence_ends_the_wait_and_the_one_who_waited_hears_of_it() -> None:
    caller = Caller([(0, b"begun", True), (5, b"never", False)])
    with pytest.raises(BodyTimeout):
        received(caller, idle_s=0.05)
    assert isinstance(caller.ended_by, asyncio.CancelledError)


def test_a_caller_that_goes_away_and_a_body_that_is_too_large_are_told_apart() -> None:
    with pytest.raises(ClientDisconnect):
        received(Caller([(0.01, b"half", True)]))
    with pytest.raises(PayloadTooLarge):
        received(Caller([(0, b"x" * 60, True), (0.01, b"x" * 60, False)]))


def test_a_call_that_is_cancelled_stops_waiting() -> None:
    caller = Caller([(5, b"", False)])

    async def cancelled(call: Callable[[], Coroutine[Any, Any, bytes]]) -> None:
        task = asyncio.ensure_future(call())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled(lambda: receive_body(caller.receive, "0", 100, 5)))
    assert isinstance(caller.ended_by, asyncio.CancelledError)
