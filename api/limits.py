"""Bodies: read within a size and an idle time, before anything looks inside."""

import asyncio
from collections.abc import Generator
from typing import Any, cast

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from api.errors import BodyTimeout
from storage.domain.errors import PayloadTooLarge

DRAIN_BYTES = 1_048_576
# An answer before the body was read waits this long for a small body to end, so that the connection lives.
DRAIN_IDLE_S = 0.1
# Once it is sent, a connection that must close stays open this long for the caller to read it.
LINGER_S = 1.0


async def read_body(request: Request, max_bytes: int, idle_s: float) -> bytes:
    """Read a body whole and keep it on the request.

    Raises:
        PayloadTooLarge: it is (or says that it is) over `max_bytes`.
        BodyTimeout: no byte came for `idle_s` seconds.
        ClientDisconnect: the caller went away.
    """
    declared = request.headers.get("content-length", "0")
    body = await receive_body(request.receive, declared, max_bytes, idle_s)
    request._body = body  # noqa: SLF001 - where starlette itself keeps a body that was read
    return body


async def receive_body(receive: Receive, declared: str, max_bytes: int, idle_s: float) -> bytes:
    """As `read_body`, below any framework; `declared` is the header Content-Length."""
    if declared.isdigit() and int(declared) > max_bytes:
        raise PayloadTooLarge(f"The body is over {max_bytes} bytes")
    chunks: list[bytes] = []
    size = 0
    more = True
    while more:
        try:
            message = await _receive_within(receive, idle_s)
        except TimeoutError as error:
            raise BodyTimeout(f"No byte of the body came for {idle_s:.0f} seconds") from error
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(chunk)
        if size > max_bytes:
            raise PayloadTooLarge(f"The body is over {max_bytes} bytes")
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _receive_within(receive: Receive, idle_s: float) -> Message:
    """Receive a message; one that is there already, as a small body is, pays for no timer.

    Raises:
        TimeoutError: none came in time.
    """
    steps = receive().__await__()
    try:
        awaited = next(steps)
    except StopIteration as there:
        return cast("Message", there.value)
    async with asyncio.timeout(idle_s):
        return await _Rest(steps, awaited)


class _Rest:
    """What is left to do of an awaitable that was begun by hand and waits for something."""

    def __init__(self, steps: Generator[Any, Any, Message], awaited: object) -> None:
        self._steps = steps
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, Message]:
        awaited = self._awaited
        while True:
            try:
                try:
                    yield awaited
                except BaseException as error:  # noqa: BLE001 - a cancellation is for the awaitable to see
                    awaited = self._steps.throw(error)
                else:
                    awaited = next(self._steps)
            except StopIteration as end:
                return cast("Message", end.value)
