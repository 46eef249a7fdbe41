"""Messages over unix sockets, one JSON object a line: launcher to host, host to child."""

import json
import socket
from typing import Any

_MAX_LINE_BYTES = 65_536


class HostDown(ConnectionError):
    """Nobody listens on the worker host's socket."""


class HostSilent(TimeoutError):
    """The worker host did not answer in time; whether it heard the message is unknown."""


def pack(message: dict[str, Any]) -> bytes:
    """Spell a message as one line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def ask(path: str, message: dict[str, Any], timeout_s: float = 5.0) -> dict[str, Any]:
    """Send one message to the host and return its answer.

    Raises:
        HostDown: no host is there.
        HostSilent: no answer within `timeout_s`.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        try:
            connection.connect(path)
            connection.sendall(pack(message))
            line = connection.makefile("rb").readline(_MAX_LINE_BYTES)
        except TimeoutError as error:
            raise HostSilent(f"the worker host did not answer within {timeout_s} s") from error
        except OSError as error:
            raise HostDown("the worker host is not running") from error
    if not line.endswith(b"\n"):
        raise HostDown("the worker host closed the connection")
    answer: dict[str, Any] = json.loads(line)
    return answer


class Lines:
    """Messages that arrive piecemeal on one connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._rest = b""

    def receive(self) -> list[dict[str, Any]] | None:
        """Return the whole messages that one read completes; None when the other side is gone, or babbles."""
        try:
            chunk = self.connection.recv(_MAX_LINE_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not chunk or len(self._rest) > _MAX_LINE_BYTES:
            return None
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        try:
            return [message for line in whole if isinstance(message := json.loads(line), dict)]
        except ValueError:
            # Whoever writes something else has nothing to say here.
            return None
