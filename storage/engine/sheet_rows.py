"""Rows of a snapshot: which segments hold them, read once each."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from storage.domain.cells import display_value
from storage.domain.encodings import Encoding
from storage.domain.manifests import Fill, Manifest, SegmentRef, Span, Stored
from storage.domain.transcripts import input_text
from storage.engine.segment_reader import SegmentReader

Written = tuple[Any, str | None, datetime]
"""A value, as it is shown, and when it was written."""


def read_columns(
    reader: SegmentReader, manifest: Manifest, column_nos: Sequence[int], start: int, count: int
) -> list[list[Written]]:
    """Return, for each column, its values from row index `start` on: `count`, or what there is."""
    values: dict[int, list[Written]] = {no: [] for no in column_nos}
    for span in manifest.spans(start, count):
        for no, found in _read_span(reader, span, column_nos).items():
            values[no] += found
    return [values[no] for no in column_nos]


def rows_bytes(
    reader: SegmentReader, manifest: Manifest, column_nos: Sequence[int], start: int, count: int
) -> int:
    """Return about how many bytes the values of such a read take, without reading them."""
    return sum(
        reader.size(segment, [source.field for _, source in members], first + span.offset, span.count)
        for span in manifest.spans(start, count)
        for segment, first, members in _by_file(span, column_nos)
    )


def row_numbers(manifest: Manifest, start: int, count: int) -> list[int]:
    """Return the numbers of rows from index `start` on."""
    return [span.first_row_no + step for span in manifest.spans(start, count) for step in range(span.count)]


def _read_span(reader: SegmentReader, span: Span, column_nos: Sequence[int]) -> dict[int, list[Written]]:
    values: dict[int, list[Written]] = {}
    for no in column_nos:
        source = span.part.columns.get(no)
        if source is None:
            values[no] = [(None, None, span.part.added_at)] * span.count
        elif isinstance(source, Fill):
            shown = display_value(source.value)
            values[no] = [(source.value, shown, source.written_at)] * span.count
    for segment, first, members in _by_file(span, column_nos):
        fields = [source.field for _, source in members]
        found = reader.read(segment, fields, first + span.offset, span.count)
        for (no, _), field, column in zip(members, fields, found, strict=True):
            values[no] = _shown(column, segment.encodings[field], segment.written_at)
    return values


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


def _shown(values: list[Any], encoding: Encoding, at: datetime) -> list[Written]:
    if encoding == "text":
        return [(value, value, at) for value in values]
    spell = input_text if encoding == "messages" else display_value
    return [(value, spell(value), at) for value in values]
