"""Bodies: read within a size and an idle time, before anything looks inside."""

import asyncio

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

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
            async with asyncio.timeout(idle_s):
                message = await receive()
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
