"""Takes rows as Arrow arrays and writes them as segments: columns in groups, rows in row groups.

A segment holds one encoding a field. Where an encoding changes or a column joins, the group's segment ends
and the next one begins, so that rows are written once, as they come.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from storage.domain.encodings import Encoding
from storage.domain.errors import Unavailable
from storage.domain.imports import ImportedField, ImportedSegment
from storage.engine.arrow_values import arrow_type
from storage.engine.data_root import DataRoot
from storage.engine.segments import (
    COMPRESSION,
    FIELDS_PER_SEGMENT,
    ROWS_PER_GROUP,
    describe_segment,
    field_name,
    segment_key,
    writing_segment,
)

# A row group is held in memory while it is gathered, and again when some of it is read; long values make
# smaller ones.
_GROUP_BYTES = 8 * 1024 * 1024

Fields = tuple[ImportedField, ...]


class SegmentSink:
    """Writes the rows of one import below the folder of its sheet; what it wrote is gone if its block fails.

    Raises:
        Unavailable: the disk is full.
    """

    def __init__(self, data: DataRoot, sheet_id: UUID, new_id: Callable[[], UUID]) -> None:
        self.rows = 0
        self.segments: list[ImportedSegment] = []
        self._data = data
        self._sheet_id = sheet_id
        self._new_id = new_id
        self._open: dict[int, _Group] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            try:
                self.publish()
            except BaseException:
                self._abandon()
                raise
        else:
            self._abandon()

    def write(self, rows: int, columns: Sequence[Any], encodings: Sequence[Encoding]) -> None:
        """Add rows: an Arrow array a column, in the order of the import's titles; columns may join later."""
        if not rows:
            # blank lines are no rows, and a segment has some
            return
        try:
            for first in range(0, len(columns), FIELDS_PER_SEGMENT):
                last = min(first + FIELDS_PER_SEGMENT, len(columns))
                fields = tuple(ImportedField(at, encodings[at]) for at in range(first, last))
                self._group(first, fields).write(columns[first:last])
        except OSError as error:
            raise Unavailable("The data folder cannot be written now (disk full?).") from error
        self.rows += rows

    def publish(self) -> None:
        """Let what was written appear; what comes next begins new segments.

        Raises:
            Unavailable: the disk is full.
        """
        for at in list(self._open):
            self._publish(at)

    def beside(self) -> "SegmentSink":
        """Return a sink for rows of the same import that come later but are written meanwhile."""
        return SegmentSink(self._data, self._sheet_id, self._new_id)

    def append(self, other: "SegmentSink") -> None:
        """Take over the rows of a sink that has published them; they follow the rows written so far."""
        self.publish()
        self.segments += [replace(one, first_row=one.first_row + self.rows) for one in other.segments]
        self.rows += other.rows

    def discard(self) -> None:
        """Remove what was published."""
        for segment in self.segments:
            self._data.remove(segment.key)

    def _group(self, first: int, fields: Fields) -> "_Group":
        group = self._open.get(first)
        if group and group.fields != fields:
            self._publish(first)
            group = None
        if group is None:
            key = segment_key(self._sheet_id, self._new_id())
            group = self._open[first] = _Group(self._data, key, self.rows, fields)
        return group

    def _publish(self, first: int) -> None:
        group = self._open[first]
        group.publish()
        self.segments.append(describe_segment(self._data, group.key, group.first_row, group.fields))
        del self._open[first]

    def _abandon(self) -> None:
        for group in self._open.values():
            group.abandon()
            self._data.remove(group.key)
        self.discard()


class _Group:
    """One segment being written: rows are gathered to whole row groups."""

    def __init__(self, data: DataRoot, key: str, first_row: int, fields: Fields) -> None:
        self.key = key
        self.first_row = first_row
        self.fields = fields
        self._schema = pa.schema(
            [(field_name(at), arrow_type(one.encoding)) for at, one in enumerate(fields)]
        )
        self._gathered: list[Any] = []
        self._stack = ExitStack()
        path = self._stack.enter_context(writing_segment(data, key))
        try:
            # Least and greatest values of long texts would swell a footer that every reader keeps. As most
            # values differ, dictionaries of them take a fifth of the writing and make the file larger.
            self._writer = pq.ParquetWriter(
                path,
                self._schema,
                compression=COMPRESSION,
                write_statistics=False,
                use_dictionary=False,
            )
        except BaseException as error:
            self._leave(error)
            raise

    def write(self, columns: Sequence[Any]) -> None:
        self._gathered.append(pa.Table.from_arrays(list(columns), schema=self._schema))
        rows = sum(table.num_rows for table in self._gathered)
        if rows >= ROWS_PER_GROUP:
            self._flush(rows - rows % ROWS_PER_GROUP)
        elif sum(table.nbytes for table in self._gathered) >= _GROUP_BYTES:
            self._flush(rows)

    def publish(self) -> None:
        """Write what is left and let the file appear under its key."""
        with self._stack:
            self._flush(sum(table.num_rows for table in self._gathered))
            self._writer.close()

    def abandon(self) -> None:
        """Leave nothing behind."""
        # the writer would write its footer when it is collected, perhaps onto a full disk
        self._writer.is_open = False
        with suppress(OSError):
            self._writer.file_handle.close()
        self._leave(_Abandoned())

    def _flush(self, rows: int) -> None:
        if rows:
            table = pa.concat_tables(self._gathered)
            self._writer.write_table(table.slice(0, rows), row_group_size=ROWS_PER_GROUP)
            self._gathered = [table.slice(rows)]

    def _leave(self, error: BaseException) -> None:
        with suppress(_Abandoned):
            self._stack.__exit__(type(error), error, error.__traceback__)


class _Abandoned(Exception):
    """The segment is not wanted any more."""
