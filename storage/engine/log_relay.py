"""Between API processes: one writes the tail, the others hand their logs over by a unix socket.

A frame is its length (4 bytes, big endian), a line of JSON, and the body of the log where there is one.
"""

import asyncio
import logging
import os
import struct
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from storage.domain.errors import Conflict, PromptlakeError, Unavailable
from storage.domain.request_logs import Score
from storage.engine.log_tail import LogWriter
from storage.engine.rows.log_tail import Entry, Idempotency

log = logging.getLogger("promptlake.logs")

ANSWER_WITHIN_S = 30.0
_LENGTH = struct.Struct(">I")
_GONE = "The process that writes logs is being restarted; it is not known whether this log was kept."
_Frame = tuple[dict[str, Any], bytes]


def _pack(head: dict[str, Any], body: bytes = b"") -> bytes:
    line = to_json(head)
    return _LENGTH.pack(len(line) + 1 + len(body)) + line + b"\n" + body


async def _read(reader: asyncio.StreamReader) -> _Frame:
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    line, _, body = (await reader.readexactly(length)).partition(b"\n")
    return from_json(line), body


async def serve_log_writer(writer: LogWriter, path: Path) -> Callable[[], Coroutine[Any, Any, None]]:
    """Take logs from the other processes at a socket; return what ends it."""
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, stream: asyncio.StreamWriter) -> None:
        try:
            while True:
                head, body = await _read(reader)
                task = asyncio.ensure_future(_serve_one(writer, head, body, stream))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        except (asyncio.IncompleteReadError, ConnectionError):  # the other process ended
            stream.close()

    _make_way(path)
    server = await asyncio.start_unix_server(connected, path)

    async def end() -> None:
        server.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    return end


def _make_way(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.parent.stat().st_uid != os.getuid():
        raise PermissionError(f"{path.parent} belongs to another user")
    path.unlink(missing_ok=True)  # of a process that was killed


async def _serve_one(
    writer: LogWriter, head: dict[str, Any], body: bytes, stream: asyncio.StreamWriter
) -> None:
    score, key = head["score"], head["key"]
    entry = Entry(
        head["workspace_id"],
        head["created_us"],
        body,
        None if score is None else Score(*score),
        None if key is None else Idempotency(key[0], bytes.fromhex(key[1])),
    )
    answer: dict[str, Any] = {"no": head["no"]}
    try:
        answer["id"] = await writer.append(entry)
    except PromptlakeError as error:
        answer |= {"code": error.code, "message": error.message}
    if not stream.is_closing():
        stream.write(_pack(answer))


class RemoteLogWriter:
    """Hands logs to the process that writes the tail; while that one is away, nothing is logged."""

    def __init__(self, path: Path, *, answer_within_s: float = ANSWER_WITHIN_S) -> None:
        self._path = path
        self._answer_within_s = answer_within_s
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._numbers = count(1)
        self._connecting = asyncio.Lock()
        self._stream: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None

    async def append(self, entry: Entry) -> int:
        """As `LogWriter.append`."""
        stream = self._stream or await self._connect()
        no = next(self._numbers)
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[no] = future
        score, key = entry.score, entry.idempotency
        head = {
            "no": no,
            "workspace_id": entry.workspace_id,
            "created_us": entry.created_us,
            "score": None if score is None else [score.name, score.score],
            "key": None if key is None else [key.key, key.request_hash.hex()],
        }
        stream.write(_pack(head, entry.body))
        try:
            async with asyncio.timeout(self._answer_within_s):
                return await future
        except TimeoutError as error:
            raise Unavailable(_GONE, retry_after_s=1) from error
        finally:
            self._waiting.pop(no, None)

    async def close(self) -> None:
        """Give up what waits, and the connection."""
        if self._listening is not None:
            self._listening.cancel()
        self._lose()

    async def _connect(self) -> asyncio.StreamWriter:
        async with self._connecting:
            if self._stream is not None:
                return self._stream
            try:
                reader, self._stream = await asyncio.open_unix_connection(self._path)
            except OSError as error:
                text = "The process that writes logs is being restarted; nothing was logged."
                raise Unavailable(text, retry_after_s=1) from error
            self._listening = asyncio.ensure_future(self._listen(reader))
            return self._stream

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                head, _ = await _read(reader)
                future = self._waiting.get(head["no"])
                if future is not None and not future.done():
                    _settle(future, head)
        except (asyncio.IncompleteReadError, ConnectionError):
            log.warning("the process that writes logs went away; %d logs wait for it", len(self._waiting))
        finally:
            self._lose()

    def _lose(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(Unavailable(_GONE, retry_after_s=1))


def _settle(future: asyncio.Future[int], head: dict[str, Any]) -> None:
    if "id" in head:
        future.set_result(head["id"])
    elif head["code"] == Conflict.code:
        future.set_exception(Conflict(head["message"]))
    else:
        future.set_exception(Unavailable(head["message"], retry_after_s=1))
