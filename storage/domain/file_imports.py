"""The rules of file imports: which files, which titles, which delimiter, and how each refusal reads.

A CSV file reads as Python's csv module reads it (a quote counts only at the start of a value, `""` inside
quotes is one quote, records end at LF, CRLF or CR), with four rules on top: lines with nothing on them are
skipped, shorter records are filled with empty text, longer ones and open quotes refuse the file. A NUL byte
refuses it too: it is the mark of a binary file, or of UTF-16 that does not say so.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from storage.domain.cells import MAX_CELL_BYTES
from storage.domain.imports import ImportRefused

FileFormat = Literal["csv", "json"]
MAX_COLUMNS = 999
MAX_TITLE_CHARS = 255
DELIMITERS = (",", ";", "\t")
_FORMATS: dict[str, FileFormat] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
FILE_ENDINGS = tuple(_FORMATS)
_SHOWN_CHARS = 60
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def find_file_format(file_name: str) -> FileFormat | None:
    """Return how a file is read, by the end of its name in any case; None when by no way known."""
    name = file_name.lower()
    return next((found for ending, found in _FORMATS.items() if name.endswith(ending)), None)


def check_titles(titles: Sequence[str], line: int | None = None) -> tuple[str, ...]:
    """Return the titles of a header that can be columns.

    Raises:
        ImportRefused: one is empty, too long or there twice, or there are too many.
    """
    place = "" if line is None else f" of the header (line {line})"
    if len(titles) > MAX_COLUMNS:
        raise ImportRefused(f"The file has {len(titles)} columns; at most {MAX_COLUMNS} can be imported")
    seen: dict[str, int] = {}
    for number, title in enumerate(titles, 1):
        if not title.strip():
            raise ImportRefused(f"Column {number}{place} has no title")
        if len(title) > MAX_TITLE_CHARS:
            raise ImportRefused(
                f"The title of column {number}{place} has {len(title)} characters; "
                f"at most {MAX_TITLE_CHARS} are allowed"
            )
        if title in seen:
            raise ImportRefused(
                f"Columns {seen[title]} and {number}{place} have the same title {shown(title)}"
            )
        if _HALF_PAIR.search(title):
            raise ImportRefused(
                f"The title of column {number}{place} holds half of a surrogate pair: no text"
            )
        seen[title] = number
    return tuple(titles)


def check_record_length(found: int, expected: int, record: int, line: int) -> None:
    """Raise ImportRefused when a record has more values than the header has columns."""
    if found > expected:
        raise ImportRefused(
            f"Record {record} (line {line}) has {found} values, but the header has {expected} columns"
        )


def cell_too_long(place: str, title: str) -> ImportRefused:
    return ImportRefused(f"{place}: the value of {shown(title)} is over {MAX_CELL_BYTES} bytes")


def no_text(line: int, byte: int) -> ImportRefused:
    if byte == 0:
        return ImportRefused(
            f"Line {line} is no text: it has a NUL byte (a binary file, or UTF-16 without a byte order mark?)"
        )
    return ImportRefused(f"Line {line} is no UTF-8 text: it has the byte 0x{byte:02x} where none may be")


_BINARY = {
    b"PK\x03\x04": "a zip archive (or a spreadsheet in one)",
    b"\x1f\x8b": "a gzip archive",
    b"%PDF-": "a PDF document",
    b"PAR1": "a Parquet file",
    b"\x89PNG": "a picture",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet or document",
}


def check_start(start: bytes) -> None:
    """Raise ImportRefused when a file is empty or begins as one that holds no text."""
    if not start:
        raise ImportRefused("The file is empty")
    for mark, kind in _BINARY.items():
        if start.startswith(mark):
            raise ImportRefused(f"The file is {kind}, no text")


def open_quote(line: int) -> ImportRefused:
    return ImportRefused(f"A quote opens in the record that begins on line {line} and is never closed")


def shown(title: str) -> str:
    """Quote a title for a sentence, cut when it is long."""
    whole = title.encode(errors="replace").decode()
    return f"“{whole if len(whole) <= _SHOWN_CHARS else whole[:_SHOWN_CHARS] + '…'}”"


_FIELD = r'(?:"(?:[^"]|"")*+"|(?!"))[^,;\t\r\n]*+'
_HEADER = re.compile(rf"{_FIELD}(?:[,;\t]{_FIELD})*+(?=[\r\n]|\Z)")
_QUOTED = re.compile(r'(?:^|(?<=[,;\t]))"(?:[^"]|"")*+"')


def choose_delimiter(start: str) -> str:
    """Return the most frequent of comma, semicolon and tab outside quotes in the first record of a text.

    The first of these where none leads.
    """
    start = start.lstrip("\r\n")
    found = _HEADER.match(start)
    # a header whose quotes do not close is judged by its first line; reading it will say what is wrong
    header = found[0] if found else re.split(r"[\r\n]", start, maxsplit=1)[0]
    bare = _QUOTED.sub("", header)
    return max(DELIMITERS, key=bare.count)


def looks_like_json(start: str) -> bool:
    """Say whether a text can only be JSON, whatever its name says."""
    return re.match(r'\s*(?:\[\s*(?:\{|\]\s*\Z)|\{\s*(?:"|\}\s*\Z))', start) is not None


def merge_titles(titles: dict[str, None], names: Iterable[str]) -> None:
    """Add names not seen yet, in order.

    Raises:
        ImportRefused: there are too many.
    """
    titles.update(dict.fromkeys(names))
    if len(titles) > MAX_COLUMNS:
        raise ImportRefused(f"The file has more than {MAX_COLUMNS} columns, the most that can be imported")
