"""Rows of a JSON file: an array of objects or one object a line, read through a window, strictly."""

import codecs
import json
import math
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Never

from storage.domain.file_imports import no_text, shown
from storage.domain.imports import ImportRefused

_CHUNK = 1 << 20
# An error this close to the end of what was read may be the end's fault.
_LONGEST_TOKEN = 32
# as deep as bodies of requests may be, and as readers of cells can follow
_DEEPEST = 200
_SPACE = re.compile(r"[ \t\r\n]*")

Row = dict[str, Any]


class JsonRows:
    """Iterates over the objects of UTF-8 bytes from an offset on; `offset` tells how far it read.

    Raises:
        ImportRefused: the file is no JSON, or something other than objects; the message names line or row.
    """

    def __init__(self, file: BinaryIO, offset: int) -> None:
        self.offset = offset
        self.row = 0
        self._file = file
        file.seek(offset)
        self._decode = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._lines = 0
        self._ended = False
        # whether a line ended in the space that was skipped last
        self._broke = False
        self._json = json.JSONDecoder(
            object_pairs_hook=self._object, parse_float=self._float, parse_constant=self._constant
        )

    def __iter__(self) -> Iterator[Row]:
        """Yield each row with its keys in order."""
        start = self._next_char()
        if start == "[":
            self._at += 1
            yield from self._array()
        elif start == "{":
            yield from self._lines_of_objects()
        elif start:
            self._refuse("the file is no JSON: it begins neither with [ nor with {")
        else:
            raise ImportRefused("The file has no JSON in it: all its lines are blank")

    def _array(self) -> Iterator[Row]:
        if self._next_char() == "]":
            self._at += 1
        else:
            yield self._row()
            while (char := self._next_char()) == ",":
                self._at += 1
                self._next_char()
                yield self._row()
            if char != "]":
                self._refuse("the array ends without ]" if not char else "a comma or ] is missing")
            self._at += 1
        if self._next_char():
            self._refuse("there is text after the end of the array")

    def _lines_of_objects(self) -> Iterator[Row]:
        yield self._row()
        while self._next_char():
            if not self._broke:
                self._refuse("there is text after the object; one object a line can be read")
            yield self._row()

    def _row(self) -> Row:
        self.row += 1
        if self._text[self._at : self._at + 1] != "{":
            self._refuse(f"row {self.row} is no object")
        while True:
            try:
                row, end = self._json.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._ended or not self._may_go_on(error):
                    self._refuse(f"row {self.row} is no JSON: {error.msg}", error.pos)
                self._read(max(_CHUNK, len(self._text) - self._at))
            except RecursionError:
                self._refuse(self._too_deep)
            except ValueError:
                # of int(): more digits than Python converts
                self._refuse(f"row {self.row} has a number with too many digits")
            else:
                if self._opened(self._at, end) > _DEEPEST and _depth(row) > _DEEPEST:
                    self._refuse(self._too_deep)
                self._at = end
                return row  # type: ignore[no-any-return]  # raw_decode gives what _object made

    @property
    def _too_deep(self) -> str:
        return f"row {self.row} is nested more than {_DEEPEST} deep"

    def _opened(self, start: int, end: int) -> int:
        """The most that the text may be nested: what stands in its strings counts as well."""
        return self._text.count("[", start, end) + self._text.count("{", start, end)

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        return error.msg.startswith("Unterminated") or error.pos > len(self._text) - _LONGEST_TOKEN

    def _next_char(self) -> str:
        """Skip space and return what stands next; empty at the end of the file."""
        self._broke = False
        while True:
            found = _SPACE.match(self._text, self._at)
            if found and found.end() > self._at:
                self._at = found.end()
                self._broke |= "\n" in found[0] or "\r" in found[0]
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._read(_CHUNK)

    def _read(self, size: int) -> None:
        self._lines += self._text.count("\n", 0, self._at)
        raw = self._file.read(size)
        self._ended = not raw
        try:
            text = self._decode.decode(raw, final=self._ended)
        except UnicodeDecodeError as error:
            self._text = self._text[self._at :]
            line = self._lines + 1 + self._text.count("\n") + error.object.count(b"\n", 0, error.start)
            raise no_text(line, error.object[error.start]) from error
        self.offset += len(raw)
        self._text = self._text[self._at :] + text
        self._at = 0

    def _line(self) -> int:
        return self._lines + 1 + self._text.count("\n", 0, self._at)

    def _refuse(self, reason: str, at: int | None = None) -> Never:
        if at is not None:
            self._at = at
        raise ImportRefused(f"Line {self._line()}: {reason}")

    def _object(self, pairs: list[tuple[str, Any]]) -> Row:
        row = dict(pairs)
        if len(row) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            self._refuse(f"row {self.row} has the key {shown(twice)} twice")
        return row

    def _float(self, text: str) -> float:
        value = float(text)
        if math.isinf(value):
            self._refuse(f"row {self.row} has a number that is too large")
        return value

    def _constant(self, word: str) -> Never:
        self._refuse(f"row {self.row} has {word}, which is no JSON value")


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level := [one for one in level if isinstance(one, dict | list)]:
        depth += 1
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    return depth
