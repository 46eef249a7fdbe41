"""A receiver of webhooks on loopback: real sockets, answers by script, and everything that arrived."""

import asyncio
import hmac
import json
import ssl
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any


@dataclass
class Arrival:
    path: str
    headers: dict[str, str]
    body: bytes
    reader: asyncio.StreamReader | None = field(repr=False, default=None)

    async def given_up(self) -> None:
        """Wait until the sender has closed its end."""
        assert self.reader is not None
        while await self.reader.read(4096):
            pass

    @property
    def event(self) -> dict[str, Any]:
        return json.loads(self.body)

    def signed_by(self, secret: str, header: str = "x-webhook-signature") -> bool:
        expected = hmac.new(secret.encode(), self.body, sha256).hexdigest()
        return hmac.compare_digest(expected, self.headers.get(header, ""))


Script = Callable[["Receiver", Arrival, asyncio.StreamWriter], Any]


async def accept(_receiver: "Receiver", _arrival: Arrival, writer: asyncio.StreamWriter) -> None:
    answer(writer, 200, b"thanks")


def answer(writer: asyncio.StreamWriter, status: int, body: bytes = b"", **headers: str) -> None:
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


@dataclass
class Receiver:
    script: Script = accept
    arrivals: list[Arrival] = field(default_factory=list)
    port: int = 0
    open: int = 0
    most_open: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def until(self, count: int, within_s: float = 15.0) -> list[Arrival]:
        """Wait until so many deliveries have arrived."""
        async with asyncio.timeout(within_s), self.changed:
            await self.changed.wait_for(lambda: len(self.arrivals) >= count)
        return self.arrivals

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *rest = head.strip().split("\r\n")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in rest)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            arrival = Arrival(first.split()[1], headers, body, reader)
            async with self.changed:
                self.arrivals.append(arrival)
                self.changed.notify_all()
            await self.script(self, arrival, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def receiving(script: Script = accept, tls: ssl.SSLContext | None = None):
    receiver = Receiver(script)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
