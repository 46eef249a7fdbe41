"""Blocks of a CSV file that Arrow parses: where a block may end, and the proof that it did end there.

Arrow's parser reads as Python's csv module does but refuses ragged records. Behind a block stands one record
of our own: if it comes back as the last one, the block did end outside quotes.
"""

from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyarrow import csv

from storage.engine.segments import field_name

_END = b"\x01end\x01"
_MOST_CUTS_TRIED = 64


@dataclass(frozen=True)
class BlockParser:
    """Parses blocks of records of `width` values into tables of text, fields named c0, c1, ..."""

    width: int
    delimiter: str

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([(field_name(at), pa.string()) for at in range(self.width)])

    @cached_property
    def _sentinel(self) -> bytes:
        return self.delimiter.encode().join([_END] * self.width) + b"\n"

    def parse(self, block: bytes) -> pa.Table | None:
        """Return the records of a block that begins with one; None unless it is regular and ends with one."""
        if not block or b"\0" in block:
            return None
        text = block + (b"" if block.endswith((b"\n", b"\r")) else b"\n") + self._sentinel
        try:
            table = csv.read_csv(
                pa.BufferReader(text),
                read_options=csv.ReadOptions(
                    column_names=self.schema.names, use_threads=False, block_size=len(text) + 1
                ),
                parse_options=csv.ParseOptions(
                    delimiter=self.delimiter,
                    quote_char='"' if b'"' in block else False,
                    newlines_in_values=True,
                ),
                convert_options=csv.ConvertOptions(column_types=self.schema),
            )
        except pa.ArrowInvalid:
            return None
        last = table.num_rows - 1
        if last < 0 or any(column[last].as_py() != _END.decode() for column in table.columns):
            return None
        return table.slice(0, last)


class Cut:
    """A place `at` which a record seems to end, the first one from the offset `near` on.

    It may still be looked for: then whoever comes near waits for it.
    """

    def __init__(self, near: int, at: int | Future[int]) -> None:
        self.near = near
        self._at = at

    @property
    def at(self) -> int:
        return self._at if isinstance(self._at, int) else self._at.result()

    def block_of(self, block: bytes, offset: int) -> bytes:
        """Cut a block read at an offset to whole records, as it seems: up to here if that is within it."""
        reached = offset + len(block)
        end = self.at if reached >= self.near else reached + 1
        return block[: end - offset if end <= reached else _record_end(block)]


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


def first_record_end(block: bytes, quotes: int) -> int:
    """Return where the first record seems to end behind so many quotes; 0 when none does in the block."""
    mark = b"\n" if b"\n" in block else b"\r"
    # a CR as the last byte may be half of a CRLF
    end = len(block) - 1 if mark == b"\r" else len(block)
    at = 0
    while (found := block.find(mark, at, end) + 1) > 0:
        quotes += block.count(b'"', at, found)
        if quotes % 2 == 0:
            return found
        at = found
    return 0
