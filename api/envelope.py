"""What surrounds every exchange: a request id, one log line, no traceback, no body left half read."""

import asyncio
import itertools
import logging
import os
import time
import traceback
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import internal_error
from api.limits import DRAIN_BYTES, DRAIN_IDLE_S, LINGER_S

log = logging.getLogger("promptlake.api")

# Successful logging is the hot path: its line would cost more than the route.
# One random number a process and a count: unique, and cheaper than a random number a call.
_PROCESS = os.urandom(4).hex()
_EXCHANGES = itertools.count()
# RFC 9745: since when; the endpoints of datasets and reports are older than this service
DEPRECATION = (b"deprecation", b"@1767225600")
_QUIET = frozenset({"/log-request", "/health"})


class Envelope:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send)
        try:
            await self.app(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            # nobody is left to answer; what was under way has been undone where it stood
            log.info("%s %s: the client went away %s", scope["method"], scope["path"], exchange.request_id)
            return
        except Exception as error:  # noqa: BLE001 - the last wall: the caller gets one shape, the log the place
            exchange.log_failure(error)
            if not exchange.status:
                await internal_error(exchange.request_id)(scope, exchange.receive, exchange.send)
        exchange.log_line()


class _Exchange:
    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.request_id = f"{_PROCESS}{next(_EXCHANGES):08x}"
        self.status = 0
        self._scope = scope
        self._receive = receive
        self._send = send
        self._started = time.perf_counter()
        self._body_left = True
        self._drained = 0
        self._closes = False
        scope.setdefault("state", {})["request_id"] = self.request_id

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] != "http.request" or not message.get("more_body", False):
            self._body_left = False
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers: list[tuple[bytes, bytes]] = list(message.get("headers", ()))
            headers.append((b"x-request-id", self.request_id.encode()))
            if self._scope["state"].get("deprecated"):
                headers.append(DEPRECATION)
            if self._body_left and self.status >= 400:  # noqa: PLR2004
                await self._drain(DRAIN_BYTES // 2, DRAIN_IDLE_S)
                self._closes = self._body_left
            if self._closes:
                headers.append((b"connection", b"close"))
            message = {**message, "headers": headers}
        elif self._closes and not message.get("more_body", False):
            # The answer goes out whole before the connection closes over what the caller still sends: closing
            # at once would reset it, and the caller might never read why.
            await self._send({**message, "more_body": True})
            await self._drain(DRAIN_BYTES, LINGER_S)
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)

    async def _drain(self, most: int, within_s: float) -> None:
        """Read what is left of the body, until `most` bytes are drained in all or time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._body_left and self._drained < most:
                    message = await self.receive()
                    self._drained += len(message.get("body", b""))

    def log_line(self) -> None:
        path = self._scope["path"]
        if self.status < 400 and path in _QUIET:  # noqa: PLR2004
            return
        level = logging.WARNING if self.status >= 500 else logging.INFO  # noqa: PLR2004
        took_ms = (time.perf_counter() - self._started) * 1000
        # a decoded path may hold line ends and codes of a terminal: a line is written by the service alone
        shown = path if path.isprintable() else quote(path)
        log.log(
            level, "%s %s %d %.1f ms %s", self._scope["method"], shown, self.status, took_ms, self.request_id
        )

    def log_failure(self, error: Exception) -> None:
        # Messages of unknown errors may quote prompts: only the kind and the places are written.
        frames: list[Any] = traceback.extract_tb(error.__traceback__)[-6:]
        places = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(frames))  # noqa: PTH119
        log.error("%s at %s %s", type(error).__name__, places, self.request_id)
