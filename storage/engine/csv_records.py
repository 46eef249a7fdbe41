"""Records of a CSV file, one by one and exactly, each refusal with its line: the slow path."""

import csv
import io
from collections.abc import Iterator
from typing import BinaryIO

from storage.domain.cells import MAX_CELL_BYTES
from storage.domain.file_imports import no_text, open_quote
from storage.domain.imports import ImportRefused

# What is read behind the last line: it comes back as a record of its own unless a quote was left open.
_END = "\x00end\x00"

csv.field_size_limit(MAX_CELL_BYTES)


class Records:
    """Iterates over the records of UTF-8 bytes from an offset on, which must be where a record begins.

    After each record `offset` is where the next one begins, `line` how many lines were read in all, and
    `first_line` the line on which the record began.

    Raises:
        ImportRefused: a line is no text, a value is too long, a quote is left open.
    """

    def __init__(self, file: BinaryIO, offset: int, line: int, delimiter: str) -> None:
        self.offset = offset
        self.line = line
        self.first_line = line + 1
        self._file = file
        self._rows = csv.reader(self._lines(), delimiter=delimiter)

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        """Return the next record; a line with nothing on it is skipped."""
        row: list[str] = []
        while not row:
            self.first_line = self.line + 1
            try:
                row = next(self._rows)
            except csv.Error as error:
                raise ImportRefused(
                    f"Line {self.first_line} begins a value over {MAX_CELL_BYTES} bytes"
                ) from error
        if row[-1].endswith(_END):
            if row != [_END]:
                raise open_quote(self.first_line)
            raise StopIteration
        return row

    def _lines(self) -> Iterator[str]:
        self._file.seek(self.offset)
        for raw in self._file:
            text = self._decoded(raw)
            if b"\r" not in raw[:-2] and raw.endswith(b"\n"):
                self.offset += len(raw)
                self.line += 1
                yield text
                continue
            for line in io.StringIO(text, newline=""):
                self.offset += len(line.encode())
                self.line += 1
                # so that an open quote swallows more than the end mark, even when nothing follows it
                yield line if line.endswith(("\n", "\r")) else line + "\n"
        yield _END

    def _decoded(self, raw: bytes) -> str:
        nul = raw.find(b"\0")
        if nul >= 0:
            raise no_text(self._line_of(raw, nul), 0)
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise no_text(self._line_of(raw, error.start), raw[error.start]) from error

    def _line_of(self, raw: bytes, at: int) -> int:
        return self.line + 1 + raw.count(b"\r", 0, at)


def count_lines(file: BinaryIO, start: int, end: int) -> int:
    """Count the line breaks (LF, CRLF, CR) of a range that ends behind one."""
    file.seek(start)
    count = 0
    left = end - start
    while left > 0 and (chunk := file.read(min(left, 1 << 20))):
        if chunk.endswith(b"\r") and len(chunk) < left:
            chunk += file.read(1)
        count += chunk.count(b"\n") + chunk.count(b"\r") - chunk.count(b"\r\n")
        left -= len(chunk)
    return count
