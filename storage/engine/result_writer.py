"""Writes the results of a computed column as segments: a value and a note a row, row group by row group."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from storage.domain.encodings import Encoding
from storage.domain.errors import Unavailable
from storage.domain.imports import ImportedField, ImportedSegment
from storage.domain.results import Values
from storage.engine.arrow_values import arrow_type
from storage.engine.column_frames import bytes_of
from storage.engine.data_root import DataRoot
from storage.engine.segments import (
    COMPRESSION,
    ROWS_PER_GROUP,
    STATUSES_KEY,
    describe_segment,
    field_name,
    segment_key,
    writing_segment,
)

# of longer values a group of rows has so many bytes; a dictionary of theirs would hide how many
_GROUP_BYTES = 4 * 1024 * 1024
_LONG_BYTES = 1_024


class ResultWriter:
    """Takes the rows of a column in order; what it wrote is gone if its block fails.

    Raises:
        Unavailable: the disk is full.
    """

    def __init__(self, data: DataRoot, sheet_id: UUID, new_id: Callable[[], UUID]) -> None:
        self.rows = 0
        self.segments: list[ImportedSegment] = []
        self._data = data
        self._sheet_id = sheet_id
        self._new_id = new_id
        self._open: _Segment | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.discard()

    def write(self, values: Values, notes: pl.Series, statuses: Counter[str]) -> None:
        """Add rows; a segment ends where the encoding changes, or where values begin to be long."""
        long = bytes_of(values) > _LONG_BYTES * len(values)
        try:
            if self._open is not None and (
                self._open.encoding != values.encoding or (long and not self._open.long)
            ):
                self.finish()
            if self._open is None:
                key = segment_key(self._sheet_id, self._new_id())
                self._open = _Segment(self._data, key, self.rows, values.encoding, long=long)
            self._open.write(values.series, notes, statuses)
        except OSError as error:
            raise Unavailable("The data folder cannot be written now (disk full?).") from error
        self.rows += len(values)

    def finish(self) -> None:
        """Publish what was written."""
        if self._open is not None:
            opened, self._open = self._open, None
            self.segments.append(opened.publish())

    def discard(self) -> None:
        """Leave nothing behind."""
        if self._open is not None:
            self._open.abandon()
            self._open = None
        for segment in self.segments:
            self._data.remove(segment.key)
        self.segments.clear()


class _Segment:
    def __init__(self, data: DataRoot, key: str, first_row: int, encoding: Encoding, *, long: bool) -> None:
        self.encoding, self.long = encoding, long
        self._data, self._key, self._first_row = data, key, first_row
        self._schema = pa.schema([(field_name(0), arrow_type(encoding)), (field_name(1), pa.string())])
        self._statuses: Counter[str] = Counter()
        self._stack = ExitStack()
        path = self._stack.enter_context(writing_segment(data, key))
        # a note is like no other: a dictionary of them would be as long as they are
        self._writer = pq.ParquetWriter(
            path,
            self._schema,
            compression=COMPRESSION,
            write_statistics=False,
            use_dictionary=False if long else [field_name(0)],
        )

    def write(self, values: pl.Series, notes: pl.Series, statuses: Counter[str]) -> None:
        arrays = [_arrow(values, self._schema.types[0]), _arrow(notes, self._schema.types[1])]
        table = pa.Table.from_arrays(arrays, schema=self._schema)
        if self.long:
            for start, count in _groups(values):
                self._writer.write_table(table.slice(start, count), row_group_size=ROWS_PER_GROUP)
        else:
            self._writer.write_table(table, row_group_size=ROWS_PER_GROUP)
        self._statuses += statuses

    def publish(self) -> ImportedSegment:
        self._writer.add_key_value_metadata({STATUSES_KEY: json.dumps(dict(self._statuses)).encode()})
        with self._stack:
            self._writer.close()
        fields = [ImportedField(0, self.encoding), ImportedField(1, "json")]
        return describe_segment(self._data, self._key, self._first_row, fields)

    def abandon(self) -> None:
        # the writer would write its footer when it is collected, perhaps onto a full disk
        self._writer.is_open = False
        self._writer.file_handle.close()
        error = RuntimeError("not wanted any more")
        try:
            self._stack.__exit__(RuntimeError, error, None)
        except RuntimeError as raised:
            if raised is not error:
                raise


def _groups(values: pl.Series) -> Iterator[tuple[int, int]]:
    """Yield (start, count) of rows that together have so many bytes, or one row."""
    ends = values.str.len_bytes().fill_null(0).cast(pl.Int64).cum_sum()
    start = 0
    while start < len(values):
        before = ends[start - 1] if start else 0
        end = max(start + 1, int(ends.search_sorted(before + _GROUP_BYTES, side="right")))
        yield start, end - start
        start = end


def _arrow(series: pl.Series, kind: Any) -> Any:
    return series.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(kind)
