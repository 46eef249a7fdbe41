"""A JSON body with one large base64 file inside, read piece by piece: the file leaves as it comes.

The reader tells strings from structure, which JSON allows without looking ahead, and replaces the file's
text by a short one; what is left is small and goes to the strict JSON parser whole. So a body is accepted
exactly when it is valid JSON, wherever the file stands in it. Names may not repeat: of two files or two
titles one would be lost.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Never

import pybase64

from api.json_body import load_json
from storage.domain.errors import Malformed, PayloadTooLarge

PLACEHOLDER = "file"
"""What stands for a file that is not empty in the body that `finish` returns."""

# room for filter groups as deep as they may be
_MOST_DEPTH = 512
_LONGEST_NAME = 256
_TOKEN = re.compile(rb'[{}\[\],:]|"(?:[^"\\]*+(?:\\.[^"\\]*+)*+"|)', re.DOTALL)
_LONGEST_ESCAPE = 6
_ASCII_ESCAPE = re.compile(rb"\\u00([0-7][0-9A-Fa-f])")
_QUOTE, _COLON, _COMMA, _OPEN, _OPEN_LIST = b'":,{['


class FileBodyReader:
    """Feed it the body; `write` gets the decoded bytes of the file named by `path`.

    Args:
        path: names of the members that lead to the file, such as ("source", "file_content_base64").
        write: called with each piece of the decoded file; may raise to refuse it.
        max_rest_bytes: most bytes of all but the file.
    """

    def __init__(self, path: tuple[str, ...], write: Callable[[bytes], None], max_rest_bytes: int) -> None:
        self._names = list(path)
        self._file = _Base64(".".join(path), write)
        self._max_rest_bytes = max_rest_bytes
        self._rest = bytearray()
        self._left = b""
        self._in_file = False
        self._seen_file = False
        # where the reader stands: for each open bracket the name of its current member, None in a list
        self._open: list[str | None] = []
        self._at_value = False
        self._string = b""

    def feed(self, piece: bytes) -> None:
        """Take the next bytes of the body.

        Raises:
            Malformed: the file is no base64, stands twice, or brackets do not match.
            PayloadTooLarge: all but the file is too large.
        """
        piece = self._left + piece
        self._left = b""
        at = 0
        while at < len(piece):
            at = self._read_file(piece, at) if self._in_file else self._read_rest(piece, at)
        if len(self._rest) + len(self._left) > self._max_rest_bytes:
            raise PayloadTooLarge(f"The body without its file is over {self._max_rest_bytes} bytes")

    def finish(self) -> Any:
        """Return the parsed body, the file in it replaced by PLACEHOLDER ("" if the file is empty).

        Raises:
            Malformed: the body is no valid JSON, or a name repeats in it.
        """
        if self._in_file:
            raise Malformed(f"The body ends inside {self._file.name}")
        return _parse(bytes(self._rest + self._left))

    @property
    def has_file(self) -> bool:
        """Say whether the body holds a file, even an empty one."""
        return self._seen_file

    def _read_rest(self, piece: bytes, start: int) -> int:
        for token in _TOKEN.finditer(piece, start):
            at, end = token.span()
            if piece[at] != _QUOTE:
                self._see_structure(piece[at])
            elif self._at_file():
                self._begin_file(piece[start:at])
                return at + 1
            elif end - at == 1:
                # the string goes on in the next piece
                self._rest += piece[start:at]
                self._left = piece[at:]
                return len(piece)
            else:
                self._string = piece[at:end] if end - at <= _LONGEST_NAME else b""
        self._rest += piece[start:]
        return len(piece)

    def _see_structure(self, token: int) -> None:
        self._at_value = token == _COLON
        if token == _COLON:
            if self._open and self._open[-1] is not None:
                self._open[-1] = _name(self._string)
        elif token in {_OPEN, _OPEN_LIST}:
            if len(self._open) == _MOST_DEPTH:
                raise Malformed(f"The body is nested deeper than {_MOST_DEPTH}")
            self._open.append("" if token == _OPEN else None)
        elif token != _COMMA:
            if not self._open:
                raise Malformed("The body is no valid JSON: a bracket closes that was never opened")
            self._open.pop()

    def _at_file(self) -> bool:
        return self._at_value and self._open == self._names

    def _begin_file(self, before: bytes) -> None:
        if self._seen_file:
            raise Malformed(f"{self._file.name} stands twice in the body")
        self._seen_file = self._in_file = True
        self._rest += before

    def _read_file(self, piece: bytes, start: int) -> int:
        end = piece.find(b'"', start)
        if end < 0:
            taken = self._file.feed(piece[start:], last=False)
            self._left = piece[start + taken :]
            return len(piece)
        self._file.feed(piece[start:end], last=True)
        self._in_file = self._at_value = False
        self._rest += b'"%s"' % (PLACEHOLDER.encode() if self._file.chars else b"")
        return end + 1


class _Base64:
    """Decodes the text of a JSON string that must be base64 with padding, as it comes."""

    def __init__(self, name: str, write: Callable[[bytes], None]) -> None:
        self.name = name
        self.chars = 0
        self._write = write
        self._left = b""
        self._padded = False

    def feed(self, text: bytes, *, last: bool) -> int:
        """Take text as it stands in the JSON; return how much was used (the rest comes again)."""
        used = len(text)
        if b"\\" in text:
            if not last and (cut := text.rfind(b"\\", -(_LONGEST_ESCAPE - 1))) >= 0:
                used = cut
                text = text[:cut]
            text = self._unescape(text)
        self._decode(self._left + text, last=last)
        return used

    def _unescape(self, text: bytes) -> bytes:
        # neither a backslash nor a quote is of the alphabet, so `\\` and `\"` need no decoding to be refused
        if b"\\\\" in text:
            self._refuse()
        text = text.replace(b"\\/", b"/")
        text = _ASCII_ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), text)
        return self._refuse() if b"\\" in text else text

    def _decode(self, text: bytes, *, last: bool) -> None:
        whole = len(text) - len(text) % 4
        self._left = text[whole:]
        if (last and self._left) or (whole and self._padded):
            self._refuse()
        if not whole:
            return
        try:
            decoded = pybase64.b64decode(memoryview(text)[:whole], validate=True)
        except ValueError:
            self._refuse()
        self._padded = text[whole - 1] == ord("=")
        self.chars += whole
        self._write(decoded)

    def _refuse(self) -> Never:
        raise Malformed(f"{self.name} is no base64 (RFC 4648 section 4, with padding), or it was cut short")


def _parse(rest: bytes) -> Any:
    found = load_json(rest, deep=True)
    # valid, but the parser that says so lets the last of two equal names win
    json.loads(rest, object_pairs_hook=_members)
    return found


def _members(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) != len(pairs):
        raise Malformed("The body is no valid JSON: a name stands twice in one object")


def _name(string: bytes) -> str:
    try:
        name = json.loads(string)
    except ValueError:
        return ""
    return str(name)
