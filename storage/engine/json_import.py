"""JSON files as Arrow arrays, batch by batch: titles in order of first sight, each value with its type.

A title's encoding widens as the file is read and never narrows: whole numbers stay whole numbers until
another type turns up, from then on values are kept as JSON. A key that a row does not have reads as null.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from storage.domain.cells import MAX_CELL_BYTES
from storage.domain.encodings import Encoding, find_encoding, widened
from storage.domain.file_imports import cell_too_long, check_titles, merge_titles, shown
from storage.domain.imports import ImportRefused
from storage.engine.arrow_values import arrow_type, compact_json
from storage.engine.json_rows import JsonRows, Row
from storage.engine.text_file import size_of, utf8_text

_BATCH_ROWS = 16_384
_BATCH_BYTES = 8 * 1024 * 1024
_MOST_BYTES_PER_CHAR = 4


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows as one array a title, for the titles seen so far, each with the encoding found so far."""

    rows: int
    arrays: list[Any]
    encodings: list[Encoding]


@contextmanager
def json_batches(path: Path) -> Iterator["JsonFile"]:
    """Open a JSON file.

    Raises:
        ImportRefused: it is no text.
    """
    with utf8_text(path) as (file, offset):
        yield JsonFile(file, offset)


class JsonFile:
    """A JSON file; `titles` grow as it is read, `offset` of `size` bytes are read."""

    def __init__(self, file: BinaryIO, offset: int) -> None:
        self.size = size_of(file)
        self._rows = JsonRows(file, offset)
        self._titles: dict[str, None] = {}
        self._found: dict[str, Encoding | None] = {}

    @property
    def offset(self) -> int:
        return self._rows.offset

    @property
    def titles(self) -> tuple[str, ...]:
        return tuple(self._titles)

    def __iter__(self) -> Iterator[Batch]:
        """Yield all rows.

        Raises:
            ImportRefused: the file is no JSON, a row no object, a key no title, a value too long or no
                Unicode; the message names line, row or title.
        """
        rows: list[Row] = []
        begun = self.offset
        for row in self._rows:
            rows.append(row)
            if len(rows) == _BATCH_ROWS or self.offset - begun >= _BATCH_BYTES:
                yield self._batch(rows)
                rows = []
                begun = self.offset
        if rows:
            yield self._batch(rows)

    def _batch(self, rows: Sequence[Row]) -> Batch:
        known = len(self._titles)
        for row in rows:
            if row.keys() - self._titles.keys():
                merge_titles(self._titles, row)
        if len(self._titles) > known:
            check_titles(self.titles)
        first = self._rows.row - len(rows) + 1
        arrays = [self._array(title, [row.get(title) for row in rows], first) for title in self._titles]
        return Batch(len(rows), arrays, [self._found[title] or "text" for title in self._titles])

    def _array(self, title: str, values: list[Any], first: int) -> Any:
        found = self._found[title] = widened(self._found.get(title), find_encoding(values))
        encoding = found or "text"
        if encoding == "json":
            values = [None if value is None else compact_json(value) for value in values]
        if encoding not in {"text", "json"}:
            return pa.array(values, arrow_type(encoding))
        longest = max((len(value) for value in values if value is not None), default=0)
        if longest * _MOST_BYTES_PER_CHAR > MAX_CELL_BYTES:
            _check_text(title, values, first)
        try:
            return pa.array(values, arrow_type(encoding))
        except UnicodeEncodeError:
            _check_text(title, values, first)
            raise


def _check_text(title: str, values: list[str | None], first: int) -> None:
    """Refuse values that are too long, or hold half of a surrogate pair and so are no Unicode text."""
    for number, value in enumerate(values, first):
        if value is None:
            continue
        try:
            size = len(value.encode())
        except UnicodeEncodeError as error:
            raise ImportRefused(
                f"Row {number}: the value of {shown(title)} holds half of a surrogate pair, which is no text"
            ) from error
        if size > MAX_CELL_BYTES:
            raise cell_too_long(f"Row {number}", title)
