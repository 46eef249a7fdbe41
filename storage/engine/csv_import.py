"""CSV files as Arrow tables of text, block by block: fast where a block is regular, exact everywhere.

A block that ends where a record may end goes to Arrow's parser, which reads as Python's csv module does but
refuses ragged records. Behind the block stands one record of our own: if it comes back as the last one, the
block did end outside quotes. Every other block is read record by record, which also finds the sentence for
what is wrong.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from pyarrow import csv

from storage.domain.cells import MAX_CELL_BYTES
from storage.domain.file_imports import (
    cell_too_long,
    check_record_length,
    check_titles,
    choose_delimiter,
    looks_like_json,
)
from storage.domain.imports import ImportRefused
from storage.engine.csv_records import Records, count_lines
from storage.engine.segments import field_name
from storage.engine.text_file import size_of, utf8_text

BLOCK_BYTES = 4 * 1024 * 1024
_END = b"\x01end\x01"
_MOST_CUTS_TRIED = 64
# No header that can be taken is longer, even if every quote in it is doubled.
_HEADER_BYTES = 4 * 1024 * 1024


@contextmanager
def csv_tables(path: Path) -> Iterator["CsvFile"]:
    """Open a CSV file whose header has been read.

    Raises:
        ImportRefused: it is no text, or its header makes no columns.
    """
    with utf8_text(path) as (file, offset):
        yield CsvFile(file, offset, BLOCK_BYTES)


class CsvFile:
    """A CSV file behind its header; `titles` are its columns, `offset` of `size` bytes are read."""

    def __init__(self, file: BinaryIO, offset: int, block_bytes: int) -> None:
        self.size = size_of(file)
        self._file = file
        self._block_bytes = block_bytes
        self._delimiter = self._find_delimiter(offset)
        records = Records(file, offset, 0, self._delimiter)
        header = next(records, None)
        if header is None:
            raise ImportRefused("The file has no header: all its lines are blank")
        self.titles = check_titles(header, records.first_line)
        self.offset = records.offset
        # how many lines stand before an offset, counted only where a sentence may need it
        self._counted = (records.offset, records.line)
        self._records_read = 0
        self._schema = pa.schema([(field_name(at), pa.string()) for at in range(len(header))])

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield all records as tables of text whose fields are named c0, c1, ...

        Raises:
            ImportRefused: a record is longer than the header, a quote is left open, bytes are no text, a
                value is too long; the message names record or line.
        """
        while self.offset < self.size:
            block = self._read_block()
            table = self._parse(block) if block else None
            if table is None:
                table = self._read_records(len(block) or self._block_bytes)
            else:
                self.offset += len(block)
            self._records_read += table.num_rows
            yield table

    def _find_delimiter(self, offset: int) -> str:
        self._file.seek(offset)
        start = self._file.read(_HEADER_BYTES).decode(errors="replace")
        if looks_like_json(start):
            raise ImportRefused("The file holds JSON, but its name says CSV")
        return choose_delimiter(start)

    def _read_block(self) -> bytes:
        """Return bytes that seem to end with a record, from the offset on; none when no end is in sight."""
        self._file.seek(self.offset)
        block = self._file.read(self._block_bytes)
        if self.offset + len(block) == self.size:
            return block
        return block[: _record_end(block)]

    def _parse(self, block: bytes) -> pa.Table | None:
        if b"\0" in block:
            return None
        columns = len(self.titles)
        sentinel = self._delimiter.encode().join([_END] * columns)
        text = block + (b"" if block.endswith((b"\n", b"\r")) else b"\n") + sentinel + b"\n"
        try:
            table = csv.read_csv(
                pa.BufferReader(text),
                read_options=csv.ReadOptions(
                    column_names=self._schema.names, use_threads=False, block_size=len(text) + 1
                ),
                parse_options=csv.ParseOptions(
                    delimiter=self._delimiter,
                    quote_char='"' if b'"' in block else False,
                    newlines_in_values=True,
                ),
                convert_options=csv.ConvertOptions(column_types=self._schema),
            )
        except pa.ArrowInvalid:
            return None
        last = table.num_rows - 1
        if last < 0 or any(column[last].as_py() != _END.decode() for column in table.columns):
            return None
        return table.slice(0, last)

    def _read_records(self, at_least_bytes: int) -> pa.Table:
        """Read whole records, at least that many bytes of them where there are."""
        records = Records(self._file, self.offset, self._line(), self._delimiter)
        width = len(self.titles)
        rows: list[list[str]] = []
        begun = self.offset
        for row in records:
            number = self._records_read + len(rows) + 1
            check_record_length(len(row), width, number, records.first_line)
            if records.offset - self.offset > MAX_CELL_BYTES:
                self._check_values(row, number, records.first_line)
            rows.append(row if len(row) == width else row + [""] * (width - len(row)))
            self.offset = records.offset
            if self.offset - begun >= at_least_bytes:
                break
        else:
            self.offset = self.size
        self._counted = (self.offset, records.line)
        columns = zip(*rows, strict=True) if rows else ([] for _ in range(width))
        return pa.Table.from_arrays([pa.array(one, pa.string()) for one in columns], schema=self._schema)

    def _check_values(self, row: list[str], number: int, line: int) -> None:
        for title, value in zip(self.titles, row, strict=False):
            if len(value.encode()) > MAX_CELL_BYTES:
                raise cell_too_long(f"Record {number} (line {line})", title)

    def _line(self) -> int:
        counted_to, lines = self._counted
        return lines + count_lines(self._file, counted_to, self.offset)


def _record_end(block: bytes) -> int:
    """Return where the last record of a block seems to end; 0 when none has even quotes before it."""
    mark = b"\n" if b"\n" in block else b"\r"
    # a CR as the last byte may be half of a CRLF
    end = len(block) - 1 if mark == b"\r" else len(block)
    quotes = block.count(b'"', 0, end)
    for _ in range(_MOST_CUTS_TRIED):
        cut = block.rfind(mark, 0, end) + 1
        if not cut:
            return 0
        quotes -= block.count(b'"', cut, end)
        if quotes % 2 == 0:
            return cut
        end = cut - 1
    return 0
