"""CSV files as Arrow tables of text, block by block: fast where a block is regular, exact everywhere.

A block that ends where a record may end goes to Arrow's parser. One that it does not take, or that did not
end there, is read record by record, which also finds the sentence for what is wrong.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from storage.domain.cells import MAX_CELL_BYTES
from storage.domain.file_imports import (
    cell_too_long,
    check_record_length,
    check_titles,
    choose_delimiter,
    looks_like_json,
)
from storage.domain.imports import ImportRefused
from storage.engine.csv_blocks import BlockParser, Cut
from storage.engine.csv_records import Records, count_lines
from storage.engine.text_file import size_of, utf8_text

BLOCK_BYTES = 4 * 1024 * 1024
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
        self.block_bytes = block_bytes
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
        self.parser = BlockParser(len(header), self._delimiter)

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield all records that are left as tables of text whose fields are named c0, c1, ...

        Raises:
            ImportRefused: a record is longer than the header, a quote is left open, bytes are no text, a
                value is too long; the message names record or line.
        """
        return self.read_to(Cut(self.size, self.size))

    def read_to(self, cut: Cut) -> Iterator[pa.Table]:
        """As iteration, up to where a record seems to end; a record that does not end there is read whole.

        Raises:
            As iteration.
        """
        while self.offset < cut.near or self.offset < cut.at:
            block = cut.block_of(self._read_at(self.offset), self.offset)
            table = self.parser.parse(block)
            if table is None:
                table = self._read_records(len(block) or self.block_bytes)
            else:
                self.offset += len(block)
            self._records_read += table.num_rows
            yield table

    def fileno(self) -> int:
        """Return the descriptor of the UTF-8 text that is read; its position is not for others to move."""
        return self._file.fileno()

    def skip_to(self, offset: int, records: int) -> None:
        """Go on at a record's begin, behind so many records that were read by somebody else."""
        self.offset = offset
        self._records_read += records

    def _find_delimiter(self, offset: int) -> str:
        self._file.seek(offset)
        start = self._file.read(_HEADER_BYTES).decode(errors="replace")
        if looks_like_json(start):
            raise ImportRefused("The file holds JSON, but its name says CSV")
        return choose_delimiter(start)

    def _read_at(self, offset: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(self.block_bytes)

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
        return pa.Table.from_arrays(
            [pa.array(one, pa.string()) for one in columns], schema=self.parser.schema
        )

    def _check_values(self, row: list[str], number: int, line: int) -> None:
        for title, value in zip(self.titles, row, strict=False):
            if len(value.encode()) > MAX_CELL_BYTES:
                raise cell_too_long(f"Record {number} (line {line})", title)

    def _line(self) -> int:
        counted_to, lines = self._counted
        return lines + count_lines(self._file, counted_to, self.offset)
