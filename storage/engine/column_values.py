"""Values of a column of a snapshot as one array."""

from storage.domain.cells import COMPLETED
from storage.domain.columns import Column
from storage.domain.results import Values
from storage.engine.segment_reader import SegmentReader
from storage.engine.snapshots import Snapshot


def read_computed(
    reader: SegmentReader, snapshot: Snapshot, column: Column, start: int, count: int
) -> Values:
    """Return the values from row index `start` on; null where the cell is not computed as it stands now."""
    # the library of frames is slow to load, and few of those who name this function call it
    from storage.engine.column_frames import read_frame  # noqa: PLC0415

    frame = read_frame(reader, snapshot, column.no, start, count, computed=column.computed)
    current = frame.statuses == COMPLETED.status
    if current.all():
        return frame.values
    return Values(frame.values.encoding, frame.values.series.set(~current, None))
