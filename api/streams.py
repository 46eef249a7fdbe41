"""Answers made piece by piece, a few of them at once: what they hold meanwhile is bounded."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Message, Send

from storage.domain.errors import Unavailable

_AT_WORK = 2
_MOST_OPEN = 24
_CHUNK_BYTES = 65_536
_STALL_S = 60.0


class Streams:
    """Makes the pieces of all answers in two threads of their own, each in turn; those of an event loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_WORK, "stream")
        self._open = 0

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def check_room(self) -> None:
        """See whether another answer may begin.

        Raises:
            Unavailable: as many are open as may be.
        """
        if self._open >= _MOST_OPEN:
            raise Unavailable(f"{_MOST_OPEN} exports are under way; try again when one has ended")

    async def chunks(self, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
        """Yield what pieces hold in chunks of 64 KB; the next piece is made when the last has been taken."""
        self._open += 1
        try:
            loop = asyncio.get_running_loop()
            while (piece := await loop.run_in_executor(self._threads, next, pieces, None)) is not None:
                for start in range(0, len(piece), _CHUNK_BYTES):
                    yield piece[start : start + _CHUNK_BYTES]
        finally:
            self._open -= 1


class Stream(StreamingResponse):
    """An answer in chunks; a caller who takes none for a minute is taken for gone, and frees its place."""

    async def stream_response(self, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(_STALL_S):
                    await send(message)
            except TimeoutError as error:
                raise ClientDisconnect from error

        await super().stream_response(send_in_time)
