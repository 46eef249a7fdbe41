"""Values of a column of a snapshot as one array."""

import polars as pl

from storage.domain.encodings import encoding_of
from storage.domain.results import Values
from storage.engine.arrow_values import arrow_array
from storage.engine.segment_reader import SegmentReader
from storage.engine.sheet_rows import read_columns
from storage.engine.snapshots import Snapshot


def read_values(reader: SegmentReader, snapshot: Snapshot, column_no: int, start: int, count: int) -> Values:
    """Return the values from row index `start` on: `count`, or what there is."""
    (written,) = read_columns(reader, snapshot, [column_no], start, count)
    values = [one[0] for one in written]
    encoding = encoding_of(values)
    return Values(encoding, pl.Series("", arrow_array(values, encoding)))
