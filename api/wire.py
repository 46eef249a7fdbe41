"""The server's HTTP protocol, but for one thing: head and body of an answer leave in one packet."""

from asyncio import BaseTransport, Transport
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class JoiningTransport:
    """A transport that keeps an answer's head until its body is there: one call of the kernel, not two."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, piece: bytes) -> None:
        if self._head:
            piece, self._head = self._head + piece, b""
        elif piece.startswith(b"HTTP/1.1 ") and not piece.startswith(b"HTTP/1.1 1"):
            self._head = piece
            return
        self._transport.write(piece)

    def flush(self) -> None:
        """Write a head that no body follows."""
        if self._head:
            self.write(b"")

    def close(self) -> None:
        self.flush()
        self._transport.close()


class JoiningProtocol(HttpToolsProtocol):
    """As the server's own, over a transport that joins."""

    def connection_made(self, transport: BaseTransport) -> None:
        self.joining = JoiningTransport(cast("Transport", transport))
        super().connection_made(cast("Transport", self.joining))

    def on_response_complete(self) -> None:
        self.joining.flush()
        super().on_response_complete()
