"""Hands logs to the one who writes the tail, and waits until they are durable; for one event loop."""

import asyncio
import logging
import socket
from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from storage.domain.errors import PromptlakeError, Unavailable
from storage.engine.log_wire import Outcomes, pack_submission
from storage.engine.rows.log_tail import Submission

log = logging.getLogger("promptlake.logs")

ANSWER_WITHIN_S = 30.0
MAX_WAITING = 4096
MAX_WAITING_BYTES = 67_108_864
_LOOK_EVERY_S = 1.0
_READ_BYTES = 262_144
_STOPPING = "The service is stopping; nothing was logged."
_AWAY = "The process that writes logs is being restarted; nothing was logged."
_GONE = "The process that writes logs is being restarted; it is not known whether this was kept."


class _Waiting(NamedTuple):
    answer: asyncio.Future[int]
    size: int
    since: float


class LogSender:
    """Sends each submission at once: the writer commits while the next requests are still being read.

    `on_much` is called each time so many bytes were answered for; it returns at once.

    Gathering them for a turn of the event loop costs less CPU and a quarter of the throughput: then the two
    wait for each other.
    """

    def __init__(
        self,
        connect: Callable[[], socket.socket],
        *,
        on_much: Callable[[], None] | None = None,
        much_bytes: int = 0,
        answer_within_s: float = ANSWER_WITHIN_S,
        max_waiting: int = MAX_WAITING,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self._connect = connect
        self._on_much = on_much
        self._much_bytes = much_bytes
        self._bytes_since = 0
        self._answer_within_s = answer_within_s
        self._max_waiting = max_waiting
        self._max_waiting_bytes = max_waiting_bytes
        self.loop = asyncio.get_running_loop()
        self._numbers = count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._waiting_bytes = 0
        self._socket: socket.socket | None = None
        self._outcomes = Outcomes()
        self._unsent = bytearray()
        # the socket takes no more: what is unsent follows when it does
        self._crowded = False
        self._watch: asyncio.TimerHandle | None = None
        self._closed = False

    async def append(self, submission: Submission) -> int:
        """Write logs durably and return the id of the first (as first given when the key repeats).

        Raises:
            Unavailable: nothing is known to be written; the caller may try again.
            Conflict: the idempotency key was used for another request.
        """
        size = submission.size
        if self._closed:
            raise Unavailable(_STOPPING, retry_after_s=1)
        if self._waiting and (
            len(self._waiting) >= self._max_waiting or self._waiting_bytes + size > self._max_waiting_bytes
        ):
            raise Unavailable("Too many logs wait to be written; nothing was logged.", retry_after_s=1)
        if self._socket is None:
            self._socket = self._open()
        number = next(self._numbers)
        answer: asyncio.Future[int] = self.loop.create_future()
        self._waiting[number] = _Waiting(answer, size, monotonic())
        self._waiting_bytes += size
        if self._watch is None:
            self._watch = self.loop.call_later(_LOOK_EVERY_S, self._look)
        for buffer in pack_submission(number, submission):
            self._unsent += buffer
        if not self._crowded:
            self._send()
        return await answer

    async def close(self) -> None:
        """Refuse what is new, wait for what is under way, then end the connection."""
        self._closed = True
        answers = [waiting.answer for waiting in self._waiting.values()]
        if answers:
            await asyncio.wait(answers, timeout=self._answer_within_s)
        self._lose()
        if self._watch is not None:
            self._watch.cancel()

    def _open(self) -> socket.socket:
        try:
            connection = self._connect()
        except OSError as error:
            raise Unavailable(_AWAY, retry_after_s=1) from error
        connection.setblocking(False)
        self.loop.add_reader(connection, self._read)
        self._outcomes = Outcomes()
        return connection

    def _send(self) -> None:
        if self._socket is None or not self._unsent:
            return
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._lose()
            return
        if sent == len(self._unsent):
            self._unsent = bytearray()
            if self._crowded:
                self.loop.remove_writer(self._socket)
        else:
            del self._unsent[:sent]
            if not self._crowded:
                self.loop.add_writer(self._socket, self._send)
        self._crowded = bool(self._unsent)

    def _read(self) -> None:
        if self._socket is None:
            return
        try:
            piece = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            log.warning("the process that writes logs went away; %d submissions wait", len(self._waiting))
            self._lose()
            return
        for number, result in self._outcomes.feed(piece):
            waiting = self._waiting.pop(number)
            self._waiting_bytes -= waiting.size
            self._bytes_since += waiting.size
            if waiting.answer.done():  # its caller went away
                continue
            if isinstance(result, PromptlakeError):
                waiting.answer.set_exception(result)
            else:
                waiting.answer.set_result(result)
        if self._on_much is not None and self._bytes_since >= self._much_bytes:
            self._bytes_since = 0
            self._on_much()

    def _look(self) -> None:
        """Give up a writer that does not answer."""
        self._watch = None
        oldest = next(iter(self._waiting.values()), None)
        if oldest is None:
            return
        if monotonic() - oldest.since > self._answer_within_s:
            log.error("the process that writes logs does not answer; %d submissions wait", len(self._waiting))
            self._lose()
        else:
            self._watch = self.loop.call_later(_LOOK_EVERY_S, self._look)

    def _lose(self) -> None:
        """End the connection; whoever waits is told that nothing is known."""
        if self._socket is not None:
            self.loop.remove_reader(self._socket)
            self.loop.remove_writer(self._socket)
            self._socket.close()
            self._socket = None
        self._unsent, self._crowded = bytearray(), False
        lost, self._waiting, self._waiting_bytes = self._waiting, {}, 0
        for waiting in lost.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(Unavailable(_GONE, retry_after_s=1))


def connect_unix(path: Path) -> socket.socket:
    """Connect to the writer's socket at once or not at all.

    Raises:
        OSError: nobody listens there.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection
