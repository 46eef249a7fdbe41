"""Bodies: read within a size and an idle time, before anything looks inside."""

import asyncio

from starlette.requests import Request

from api.errors import BodyTimeout
from storage.domain.errors import PayloadTooLarge

DRAIN_BYTES = 1_048_576


async def read_body(request: Request, max_bytes: int, idle_s: float) -> bytes:
    """Read a body whole and keep it on the request.

    Raises:
        PayloadTooLarge: it is (or says that it is) over `max_bytes`.
        BodyTimeout: no byte came for `idle_s` seconds.
    """
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > max_bytes:
        raise PayloadTooLarge(f"The body is over {max_bytes} bytes")
    chunks: list[bytes] = []
    size = 0
    stream = request.stream()
    while True:
        try:
            async with asyncio.timeout(idle_s):
                chunk = await anext(stream)
        except StopAsyncIteration:
            break
        except TimeoutError as error:
            raise BodyTimeout(f"No byte of the body came for {idle_s:.0f} seconds") from error
        size += len(chunk)
        if size > max_bytes:
            raise PayloadTooLarge(f"The body is over {max_bytes} bytes")
        chunks.append(chunk)
    request._body = b"".join(chunks)  # noqa: SLF001 - where starlette itself keeps a body that was read
    return request._body  # noqa: SLF001
