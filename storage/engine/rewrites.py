"""Rows of a snapshot written anew as readers see them: values, with notes where a segment's facts fail."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from storage.domain.cells import COMPLETED, display_value
from storage.domain.encodings import Encoding, encoding_of
from storage.domain.imports import ImportedSegment
from storage.domain.manifests import SegmentRef, Stored
from storage.domain.overlay import Note
from storage.domain.sheet_upkeep import Rewrite, Rewritten
from storage.engine.data_root import DataRoot
from storage.engine.segment_reader import SegmentReader
from storage.engine.segments import FIELDS_PER_SEGMENT, segment_key, write_segment
from storage.engine.sheet_rows import Written, read_columns, rows_bytes
from storage.engine.snapshots import Snapshot

_HELD_BYTES = 32 * 1024 * 1024
_HELD_CELLS = 500_000


def bounded(reader: SegmentReader, snapshot: Snapshot, rewrite: Rewrite) -> Iterator[Rewrite]:
    """Split a rewrite until one column of it can be held in memory."""
    first, count = _place(snapshot, rewrite)
    most = max((rows_bytes(reader, snapshot, [no], first, count) for no in rewrite.column_nos), default=0)
    if most <= _HELD_BYTES or count <= 1:
        yield rewrite
        return
    (middle,) = (span.first_row_no for span in snapshot.manifest.spans(first + count // 2, 1))
    for start, end in ((rewrite.first_row_no, middle), (middle, rewrite.end_row_no)):
        yield from bounded(reader, snapshot, Rewrite(start, end, rewrite.column_nos))


def _place(snapshot: Snapshot, rewrite: Rewrite) -> tuple[int, int]:
    first = snapshot.manifest.index_from(rewrite.first_row_no)
    return first, snapshot.manifest.index_from(rewrite.end_row_no) - first


def rewrite_rows(
    data: DataRoot,
    reader: SegmentReader,
    snapshot: Snapshot,
    rewrite: Rewrite,
    sheet_id: UUID,
    new_id: Callable[[], UUID],
    written: list[ImportedSegment],
) -> Rewritten:
    """Write the rows and columns of a rewrite as segments; each is added to `written` once it is published.

    Raises:
        Unavailable: the disk is full.
    """
    first, count = _place(snapshot, rewrite)
    sources: dict[int, Stored] = {}
    for nos in _groups(reader, snapshot, rewrite, first, count):
        columns = read_columns(reader, snapshot, nos, first, count)
        at = _usual_time(columns)
        fields: list[tuple[int, Encoding, Sequence[Any]]] = []
        places: list[tuple[int, int | None]] = []
        for no, cells in zip(nos, columns, strict=True):
            encoding = _encoding(snapshot, rewrite, no, cells)
            places.append((len(fields), None))
            fields.append((len(fields), encoding, [cell[0] for cell in cells]))
            notes = [_note(cell, at, encoding) for cell in cells]
            if any(notes):
                places[-1] = (places[-1][0], len(fields))
                fields.append((len(fields), "json", notes))
        segment = write_segment(data, segment_key(sheet_id, new_id()), 0, fields)
        written.append(segment)
        ref = SegmentRef(segment.key, tuple(field.encoding for field in segment.fields), at)
        sources.update(
            {no: Stored(ref, field, 0, notes) for no, (field, notes) in zip(nos, places, strict=True)}
        )
    return Rewritten(rewrite, sources)


def _groups(
    reader: SegmentReader, snapshot: Snapshot, rewrite: Rewrite, first: int, count: int
) -> Iterator[list[int]]:
    """Yield columns together as far as they can be held in memory."""
    group: list[int] = []
    held = 0
    # a column may bring a field of notes
    most = min(FIELDS_PER_SEGMENT // 2, max(1, _HELD_CELLS // max(1, count)))
    for no in rewrite.column_nos:
        size = rows_bytes(reader, snapshot, [no], first, count)
        if group and (len(group) >= most or held + size > _HELD_BYTES):
            yield group
            group, held = [], 0
        group.append(no)
        held += size
    if group:
        yield group


def _usual_time(columns: Sequence[Sequence[Written]]) -> datetime:
    times = Counter(cell[2] for cells in columns for cell in cells)
    return times.most_common(1)[0][0]


def _encoding(snapshot: Snapshot, rewrite: Rewrite, column_no: int, cells: Sequence[Written]) -> Encoding:
    """Messages are kept as such, so that they are shown as their text."""
    first, count = _place(snapshot, rewrite)
    for span in snapshot.manifest.spans(first, count):
        source = span.part.columns.get(column_no)
        if isinstance(source, Stored) and source.segment.encodings[source.field] == "messages":
            return "messages"
    return encoding_of([cell[0] for cell in cells])


def _note(cell: Written, at: datetime, encoding: Encoding) -> Any:
    value, shown, written_at, state = cell
    plain = encoding == "messages" and shown == display_value(value)
    if written_at == at and state is COMPLETED and not plain:
        return None
    return Note(None if written_at == at else written_at, state, plain).to_json()
