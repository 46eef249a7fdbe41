"""Answers made piece by piece, a few of them at once: what they hold meanwhile is bounded."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import BoundedSemaphore, Lock

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from storage.domain.errors import Unavailable

_AT_WORK = 2
_MOST_OPEN = 24
_CHUNK_BYTES = 65_536
_STALL_S = 60.0


class _Source:
    """Pieces that one thread makes while another may end it all."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._lock = Lock()

    def take(self) -> bytes:
        """Make the next piece that is not empty; empty: there is none."""
        with self._lock:
            return next(filter(None, self._pieces), b"")

    def close(self) -> None:
        """Let go of what the pieces are made of."""
        with self._lock:
            self._pieces = iter(())


class Streams:
    """Makes the pieces of all answers in two threads of their own, each in turn; those of one process."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_WORK, "stream")
        self._places = BoundedSemaphore(_MOST_OPEN)

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def take_place(self) -> None:
        """Take the place of an answer; `leave` gives it back.

        Raises:
            Unavailable: as many are open as may be.
        """
        if not self._places.acquire(blocking=False):
            raise Unavailable(f"{_MOST_OPEN} exports are under way; try again when one has ended")

    def leave(self) -> None:
        self._places.release()

    async def chunks(self, pieces: Iterator[bytes]) -> AsyncGenerator[bytes]:
        """Yield what pieces hold in chunks of 64 KB; the next piece is made when the last has been taken."""
        loop = asyncio.get_running_loop()
        source, pieces = _Source(pieces), iter(())
        try:
            while piece := await loop.run_in_executor(self._threads, source.take):
                for start in range(0, len(piece), _CHUNK_BYTES):
                    yield piece[start : start + _CHUNK_BYTES]
        finally:
            # the traceback of a caller who went away keeps this frame until the collector comes, late
            piece = b""
            with suppress(RuntimeError):  # the threads have ended
                self._threads.submit(source.close)


class Stream(StreamingResponse):
    """An answer in chunks; a caller who takes none for a minute is taken for gone, and frees its place.

    Raises:
        Unavailable: as many are open as may be.
    """

    def __init__(
        self, streams: Streams, pieces: Iterator[bytes], *, media_type: str, headers: Mapping[str, str]
    ) -> None:
        self._chunks = streams.chunks(pieces)
        super().__init__(self._chunks, media_type=media_type, headers=headers)
        streams.take_place()
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.leave()
            # at once, with what it holds: the collector comes late
            await self._chunks.aclose()

    async def stream_response(self, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(_STALL_S):
                    await send(message)
            except TimeoutError as error:
                raise ClientDisconnect from error

        await super().stream_response(send_in_time)
