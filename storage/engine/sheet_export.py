"""A snapshot as Parquet, CSV or JSON lines: piece by piece, so that no sheet is ever held whole."""

import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from storage.domain.columns import Column
from storage.domain.encodings import Encoding
from storage.engine.arrow_values import arrow_array, arrow_type
from storage.engine.csv_lines import CsvLines
from storage.engine.segment_reader import SegmentReader
from storage.engine.segments import COMPRESSION
from storage.engine.sheet_rows import Written, read_columns, rows_bytes
from storage.engine.sheet_types import column_encodings
from storage.engine.snapshots import Snapshot

SheetFormat = Literal["parquet", "csv", "jsonl"]
_MOST_ROWS = 2_048
_MOST_CELLS = 100_000
_MOST_BYTES = 4 * 1024 * 1024


def export_pieces(
    reader: SegmentReader,
    snapshot: Snapshot,
    columns: Sequence[Column],
    kind: SheetFormat,
    report: Callable[[int], None] = lambda _rows: None,
) -> Iterator[bytes]:
    """Yield the bytes of a file with the rows of a snapshot; columns are named by their titles.

    A piece has some megabytes at most, unless a row is larger. While it is used nothing else is held.
    Parquet has a type a column, JSON as text where values are of several; CSV has what a reader is shown.
    `report` is called with the rows that were spelled since it was called last.
    """
    batches = _batches(reader, snapshot, columns, report)
    titles = [column.title for column in columns]
    if kind == "parquet":
        known = column_encodings(snapshot, [column.no for column in columns])
        return _parquet(titles, [known[column.no] for column in columns], batches)
    return (_csv if kind == "csv" else _json_lines)(titles, batches)


def _batches(
    reader: SegmentReader, snapshot: Snapshot, columns: Sequence[Column], report: Callable[[int], None]
) -> Iterator[list[list[Written]]]:
    nos = [column.no for column in columns]
    start, rows = 0, snapshot.manifest.row_count
    while start < rows:
        count = min(_MOST_ROWS, max(1, _MOST_CELLS // max(1, len(nos))), rows - start)
        while count > 1 and rows_bytes(reader, snapshot, nos, start, count) > _MOST_BYTES:
            count //= 2
        batch = read_columns(reader, snapshot, nos, start, count)
        yield batch
        start += count
        report(count)


def _csv(titles: Sequence[str], batches: Iterable[list[list[Written]]]) -> Iterator[bytes]:
    lines = CsvLines()
    yield lines.line(titles).encode()
    for batch in batches:
        rows = zip(*batch, strict=True)
        piece = b"".join(lines.line([cell[1] for cell in cells]).encode() for cells in rows)
        batch.clear()
        yield piece


def _json_lines(titles: Sequence[str], batches: Iterable[list[list[Written]]]) -> Iterator[bytes]:
    for batch in batches:
        rows = zip(*batch, strict=True)
        piece = b"".join(_json_line(titles, [cell[0] for cell in cells]) for cells in rows)
        batch.clear()
        yield piece


def _json_line(titles: Sequence[str], values: Sequence[Any]) -> bytes:
    row = dict(zip(titles, values, strict=True))
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class _Drain(io.RawIOBase):
    """Takes what a writer writes and gives it away."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._at = 0

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        taken = bytes(content)
        self._held.append(taken)
        self._at += len(taken)
        return len(taken)

    def tell(self) -> int:
        return self._at

    def taken(self) -> bytes:
        whole = b"".join(self._held)
        self._held.clear()
        return whole


def _parquet(
    titles: Sequence[str], encodings: Sequence[Encoding], batches: Iterable[list[list[Written]]]
) -> Iterator[bytes]:
    drain = _Drain()
    schema = pa.schema(
        [(title, arrow_type(encoding)) for title, encoding in zip(titles, encodings, strict=True)]
    )
    with pq.ParquetWriter(pa.PythonFile(drain, mode="w"), schema, compression=COMPRESSION) as writer:
        for batch in batches:
            writer.write_table(_table(batch, encodings, schema))
            batch.clear()
            yield drain.taken()
    yield drain.taken()


def _table(batch: list[list[Written]], encodings: Sequence[Encoding], schema: pa.Schema) -> pa.Table:
    arrays = [
        arrow_array([cell[0] for cell in cells], encoding)
        for cells, encoding in zip(batch, encodings, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
