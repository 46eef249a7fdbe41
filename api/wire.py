"""The server's HTTP protocol, but for two things: head and body of an answer leave in one packet, and what is
no request is refused in the shape of all errors.
"""

import json
import os
from asyncio import BaseTransport, Transport
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.errors import error_body


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

    def send_400_response(self, msg: str) -> None:
        """Answer what cannot be read as a request; `msg` is the server's own word for it."""
        body = json.dumps(error_body(f"{msg} A path with its query has at most 64 KB.", "validation_error"))
        head = (
            "HTTP/1.1 400 Bad Request",
            "content-type: application/json",
            f"content-length: {len(body)}",
            f"x-request-id: {os.urandom(8).hex()}",
            "connection: close",
        )
        self.transport.write("\r\n".join([*head, "", body]).encode())
        self.transport.close()

    def on_response_complete(self) -> None:
        self.joining.flush()
        super().on_response_complete()
