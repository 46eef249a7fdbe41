"""Runs of rows that can be held in memory, told from the footers of what they are read from."""

from collections.abc import Iterator, Sequence

from storage.engine.segment_reader import SegmentReader
from storage.engine.sheet_rows import rows_bytes
from storage.engine.snapshots import Snapshot


def stretches(
    reader: SegmentReader,
    columns: Sequence[tuple[Snapshot, int]],
    row_count: int,
    most_rows: int,
    most_bytes: int,
) -> Iterator[tuple[int, int]]:
    """Yield (start, count) over all rows: at most so many, whose values in these columns have so many bytes.

    A row whose values are larger is a run by itself.
    """
    start = 0
    while start < row_count:
        count = min(most_rows, row_count - start)
        while count > 1:
            size = sum(rows_bytes(reader, snapshot, [no], start, count) for snapshot, no in columns)
            if size <= most_bytes:
                break
            # long values may lie at the beginning: what is left is measured again
            count = max(1, min(count // 2, count * most_bytes // size))
        yield start, count
        start += count
