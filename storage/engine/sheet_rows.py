"""Rows of a snapshot: which segments hold them, read once each, with the overlay on top."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from storage.domain.cells import COMPLETED, CellState, display_value, restated
from storage.domain.encodings import Encoding
from storage.domain.manifests import Fill, Manifest, SegmentRef, Span, Stored
from storage.domain.overlay import KEPT, Entry, Note, Patch, entries_within
from storage.domain.transcripts import input_text
from storage.engine.segment_reader import SegmentReader
from storage.engine.snapshots import Snapshot

Written = tuple[Any, str | None, datetime, CellState]
"""A value, as it is shown, when it was written, and its state."""


def read_columns(
    reader: SegmentReader, snapshot: Snapshot, column_nos: Sequence[int], start: int, count: int
) -> list[list[Written]]:
    """Return, for each column, its values from row index `start` on: `count`, or what there is."""
    values: dict[int, list[Written]] = {no: [] for no in column_nos}
    for span in snapshot.manifest.spans(start, count):
        found = _read_span(reader, span, column_nos)
        for one in snapshot.overlay.patches:
            _lay(found, one.patch, span.first_row_no)
        for no, written in found.items():
            values[no] += written
    return [values[no] for no in column_nos]


def rows_bytes(
    reader: SegmentReader, snapshot: Snapshot, column_nos: Sequence[int], start: int, count: int
) -> int:
    """Return about how many bytes the values of such a read take, without reading them.

    What the overlay holds for these rows counts by the mean of its entries.
    """
    total = 0
    for span in snapshot.manifest.spans(start, count):
        for segment, first, members in _by_file(span, column_nos):
            fields = [source.field for _, source in members]
            total += reader.size(segment, fields, first + span.source_offset, span.count)
        end = span.first_row_no + span.count
        for one in snapshot.overlay.patches:
            entries = sum(
                1 for no in column_nos for _ in entries_within(one.patch, no, span.first_row_no, end)
            )
            total += one.bytes * entries // max(1, one.patch.cell_count)
    return total


def row_numbers(manifest: Manifest, start: int, count: int) -> Sequence[int]:
    """Return the numbers of rows from index `start` on; those that follow each other cost nothing."""
    runs = [range(span.first_row_no, span.first_row_no + span.count) for span in manifest.spans(start, count)]
    return runs[0] if len(runs) == 1 else list(chain.from_iterable(runs))


def _read_span(reader: SegmentReader, span: Span, column_nos: Sequence[int]) -> dict[int, list[Written]]:
    values: dict[int, list[Written]] = {}
    for no in column_nos:
        source = span.part.columns.get(no)
        if source is None:
            values[no] = [(None, None, span.part.added_at, COMPLETED)] * span.count
        elif isinstance(source, Fill):
            shown = display_value(source.value)
            at = source.written_at or span.part.added_at
            values[no] = [(source.value, shown, at, source.state)] * span.count
    for segment, first, members in _by_file(span, column_nos):
        fields = [source.field for _, source in members]
        notes = [source.notes for _, source in members if source.notes is not None]
        found = reader.read(segment, [*fields, *notes], first + span.source_offset, span.count)
        noted = iter(found[len(fields) :])
        for (no, source), field, column in zip(members, fields, found, strict=False):
            values[no] = shown_values(
                column,
                segment.encodings[field],
                segment.written_at,
                None if source.notes is None else next(noted),
            )
    return values


def _lay(values: dict[int, list[Written]], patch: Patch, first_row_no: int) -> None:
    """Write what a patch says of the rows from a number on over their values."""
    for no, one in patch.restated.items():
        if no in values:
            rows = values[no]
            for at in range(min(len(rows), max(0, one.end_row_no - first_row_no))):
                rows[at] = (*rows[at][:3], restated(rows[at][3], one.state))
    for no in patch.cells.keys() & values.keys():
        rows = values[no]
        for row_no, entry in entries_within(patch, no, first_row_no, first_row_no + len(rows)):
            at = row_no - first_row_no
            rows[at] = _entered(rows[at], entry)


def _entered(under: Written, entry: Entry) -> Written:
    if entry.value is KEPT:
        return (*under[:3], restated(under[3], entry.state))
    return entry.value, display_value(entry.value), entry.written_at, entry.state


def _by_file(
    span: Span, column_nos: Sequence[int]
) -> Iterator[tuple[SegmentRef, int, list[tuple[int, Stored]]]]:
    """Yield columns of one file that begin at one row together: they are read at once."""
    together: dict[tuple[str, int], list[tuple[int, Stored]]] = {}
    for no in column_nos:
        source = span.part.columns.get(no)
        if isinstance(source, Stored):
            together.setdefault((source.segment.key, source.start), []).append((no, source))
    for members in together.values():
        _, source = members[0]
        yield source.segment, source.start, members


def shown_values(
    values: list[Any], encoding: Encoding, at: datetime, notes: list[Any] | None
) -> list[Written]:
    """Return what a field holds as a reader sees it."""
    written: list[Written]
    read = [None if spelled is None else Note.from_json(spelled) for spelled in notes or ()]
    if encoding == "text":
        written = [(value, value, at, COMPLETED) for value in values]
    elif encoding != "messages":
        written = [(value, display_value(value), at, COMPLETED) for value in values]
    else:
        plain = {place for place, note in enumerate(read) if note and note.plain}
        spellers = (display_value if place in plain else input_text for place in range(len(values)))
        written = [
            (value, spell(value), at, COMPLETED) for value, spell in zip(values, spellers, strict=True)
        ]
    for place, note in enumerate(read):
        if note is not None:
            written[place] = (*written[place][:2], note.written_at or at, note.state)
    return written
