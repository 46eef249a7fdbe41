"""Frames between owner and worker: four bytes of length, then that many bytes of UTF-8 JSON.

A request about many rows is packed: a header, and JSON arrays that nobody on the way has to read.
"""

import json
import os
from collections.abc import Sequence
from typing import Any

HEADER_BYTES = 4


class FrameTooLarge(Exception):
    """A frame is over the size that both sides agreed on."""


def encode(value: Any, max_bytes: int) -> bytes:
    """Spell a JSON value as a frame.

    Raises:
        FrameTooLarge: it is over `max_bytes`.
    """
    # lone surrogates cannot be UTF-8; escaped they reach the other side, which knows what to do with them
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return frame_of(text.encode("utf-8", "surrogatepass"), max_bytes)


def frame_of(body: bytes, max_bytes: int) -> bytes:
    """Put the length before a body.

    Raises:
        FrameTooLarge: it is over `max_bytes`.
    """
    if len(body) > max_bytes:
        raise FrameTooLarge(f"{len(body)} bytes, {max_bytes} are allowed")
    return len(body).to_bytes(HEADER_BYTES, "big") + body


def decode(body: bytes) -> Any:
    """Read the JSON value of a frame's body.

    Raises:
        ValueError: it is no UTF-8 JSON.
    """
    return json.loads(body.decode("utf-8", "surrogatepass"))


def pack(header: dict[str, Any], parts: Sequence[bytes], max_bytes: int) -> bytes:
    """Spell a header and the bytes that belong to it as a frame; the first byte is 0, as in no JSON.

    Raises:
        FrameTooLarge: it is over `max_bytes`.
    """
    text = json.dumps({**header, "sizes": [len(part) for part in parts]}).encode()
    return frame_of(b"".join((b"\0", len(text).to_bytes(HEADER_BYTES, "big"), text, *parts)), max_bytes)


def read_request(body: bytes) -> Any:
    """Read the JSON value of a body, or the header of a packed one with its `parts`."""
    if body[:1] != b"\0":
        return decode(body)
    start = 1 + HEADER_BYTES
    at = start + int.from_bytes(body[1:start], "big")
    header = decode(body[start:at])
    header["parts"] = parts = []
    for size in header.pop("sizes"):
        parts.append(body[at : at + size])
        at += size
    return header


def read_frame(fd: int, max_bytes: int) -> bytes | None:
    """Read one body from a blocking descriptor; None when the other side is gone.

    Raises:
        FrameTooLarge: the header says more than `max_bytes`.
    """
    header = _read(fd, HEADER_BYTES)
    if header is None:
        return None
    size = int.from_bytes(header, "big")
    if size > max_bytes:
        raise FrameTooLarge(f"{size} bytes, {max_bytes} are allowed")
    return _read(fd, size)


def write_frame(fd: int, frame: bytes) -> None:
    """Write a frame to a blocking descriptor."""
    rest = memoryview(frame)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _read(fd: int, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = os.read(fd, min(size - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)
