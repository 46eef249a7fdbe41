"""Columns of a snapshot as frames: values, statuses and hashes of many rows at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from storage.domain.cells import COMPLETED, STALE, CellState
from storage.domain.encodings import JSON_ENCODINGS, Encoding, encoding_of
from storage.domain.manifests import Fill, Span, Stored
from storage.domain.overlay import KEPT, Entry, Patch, entries_within, to_micros
from storage.domain.results import Values
from storage.engine.arrow_values import compact_json
from storage.engine.segment_reader import SegmentReader
from storage.engine.snapshots import Snapshot

_TYPES: dict[Encoding, Any] = {
    "text": pl.String,
    "integer": pl.Int64,
    "double": pl.Float64,
    "boolean": pl.Boolean,
    "json": pl.String,
    "messages": pl.String,
}
# how the note of a cell begins that was completed and has nothing more to say
_PLAIN = '{"state":{"input_hash":"'
_HASH_LENGTH = 32
_STATUS = r'"status":"([a-z]+)"'
_FEW_ROWS = 100
_HASH = r'"input_hash":"([0-9a-f]{32})"'


@dataclass(frozen=True, slots=True)
class ColumnFrame:
    """Cells of a column: String series of statuses and of the hashes that they were computed from."""

    values: Values
    statuses: pl.Series
    hashes: pl.Series

    def gather(self, places: pl.Series) -> "ColumnFrame":
        """Return the cells at these places."""
        return ColumnFrame(
            Values(self.values.encoding, self.values.series.gather(places)),
            self.statuses.gather(places),
            self.hashes.gather(places),
        )

    def slice(self, first: int, count: int) -> "ColumnFrame":
        """Return so many cells from a place on."""
        return ColumnFrame(
            Values(self.values.encoding, self.values.series.slice(first, count)),
            self.statuses.slice(first, count),
            self.hashes.slice(first, count),
        )


def bytes_of(values: Values) -> int:
    """Return about how much memory values take by themselves, whatever they share it with."""
    if values.series.dtype != pl.String:
        return 8 * len(values)
    if len(values) <= _FEW_ROWS:
        # an expression of frames costs more than that many rows
        return 16 * len(values) + sum(len(text) for text in values.series.to_list() if text is not None)
    return 16 * len(values) + int(values.series.str.len_bytes().sum() or 0)


def read_frame(
    reader: SegmentReader,
    snapshot: Snapshot,
    column_no: int,
    start: int,
    count: int,
    *,
    computed: bool,
    hashed: bool = True,
) -> ColumnFrame:
    """Read cells of a column from row index `start` on; rows beyond the end are null and completed.

    Unless `hashed`, the hashes need not be told.
    """
    pieces = [
        _read_span(reader, snapshot, span, column_no, computed=computed, hashed=hashed)
        for span in snapshot.manifest.spans(start, count)
    ]
    found = max(0, min(count, snapshot.manifest.row_count - start))
    if found < count:
        pieces.append(_constant(None, COMPLETED, count - found))
    return _joined(pieces)


def read_statuses(
    reader: SegmentReader, snapshot: Snapshot, column_no: int, start: int, count: int, *, computed: bool
) -> pl.Series:
    """Read the statuses of such cells alone: values may be long."""
    pieces = [_repeat("completed", 0)]
    for span in snapshot.manifest.spans(start, count):
        source = span.part.columns.get(column_no)
        if isinstance(source, Stored):
            statuses = _stored_statuses(reader, source, span)
        else:
            state = source.state if isinstance(source, Fill) else STALE if computed else COMPLETED
            statuses = _repeat(state.status, span.count)
        for one in snapshot.overlay.patches:
            entries = list(
                entries_within(one.patch, column_no, span.first_row_no, span.first_row_no + span.count)
            )
            statuses = _laid_statuses(statuses, one.patch, column_no, span.first_row_no, entries)
        pieces.append(statuses)
    return pl.concat(pieces)


def standing_notes(
    reader: SegmentReader, snapshot: Snapshot, column_no: int, start: int, count: int
) -> pl.Series:
    """Return the notes that cells keep when they go on as completed with their values; null: not known here.

    They are known where a segment says so, and no patch wrote the cell since.
    """
    pieces = []
    for span in snapshot.manifest.spans(start, count):
        source = span.part.columns.get(column_no)
        if not isinstance(source, Stored) or source.notes is None:
            pieces.append(_repeat(None, span.count))
            continue
        first = source.start + span.source_offset
        table = reader.read_arrow(source.segment, [source.notes], first, span.count)
        notes = _timed(pl.Series("note", table.column(0)), to_micros(source.segment.written_at))
        written = {
            row - span.first_row_no
            for one in snapshot.overlay.patches
            for row, _ in entries_within(
                one.patch, column_no, span.first_row_no, span.first_row_no + span.count
            )
        }
        pieces.append(notes.scatter(sorted(written), None) if written else notes)
    return pl.concat(pieces) if pieces else _repeat(None, 0)


def _timed(notes: pl.Series, micros: int) -> pl.Series:
    """Let notes of completed cells say when their values were written; those of others are null."""
    note = pl.col("note")
    timed = (
        pl.when(note.is_null())
        .then(pl.lit(f'{{"at":{micros}}}'))
        .when(note.str.starts_with('{"at":'))
        .then(note)
        .otherwise(pl.concat_str([pl.lit(f'{{"at":{micros},'), note.str.slice(1)]))
    )
    plain = note.is_null() | ~note.str.contains('"status":"', literal=True)
    return notes.to_frame("note").select(pl.when(plain).then(timed).alias("note")).to_series()


def null_frame(count: int) -> ColumnFrame:
    """As many nulls, completed."""
    return _constant(None, COMPLETED, count)


def _read_span(
    reader: SegmentReader, snapshot: Snapshot, span: Span, column_no: int, *, computed: bool, hashed: bool
) -> ColumnFrame:
    source = span.part.columns.get(column_no)
    if isinstance(source, Stored):
        piece = _stored(reader, source, span, hashed=hashed)
    elif isinstance(source, Fill):
        piece = _constant(source.value, source.state, span.count)
    else:
        piece = _constant(None, STALE if computed else COMPLETED, span.count)
    for one in snapshot.overlay.patches:
        piece = _laid(piece, one.patch, column_no, span.first_row_no, span.count)
    return piece


def _stored(reader: SegmentReader, source: Stored, span: Span, *, hashed: bool) -> ColumnFrame:
    notes_matter = source.notes is not None and (hashed or not reader.all_completed(source.segment))
    fields = [source.field, source.notes or 0] if notes_matter else [source.field]
    table = reader.read_arrow(source.segment, fields, source.start + span.source_offset, span.count)
    values = Values(source.segment.encodings[source.field], pl.Series("", table.column(0)))
    if not notes_matter:
        return ColumnFrame(values, _repeat("completed", span.count), _repeat(None, span.count))
    notes = pl.Series("note", table.column(1))
    if notes.str.starts_with(_PLAIN).all(ignore_nulls=False):
        hashes = notes.str.slice(len(_PLAIN), _HASH_LENGTH)
        return ColumnFrame(values, _repeat("completed", span.count), hashes)
    return ColumnFrame(values, _noted_statuses(notes), notes.str.extract(_HASH))


def _stored_statuses(reader: SegmentReader, source: Stored, span: Span) -> pl.Series:
    if source.notes is None or reader.all_completed(source.segment):
        return _repeat("completed", span.count)
    first = source.start + span.source_offset
    return _noted_statuses(
        pl.Series("note", reader.read_arrow(source.segment, [source.notes], first, span.count).column(0))
    )


def _noted_statuses(notes: pl.Series) -> pl.Series:
    return notes.str.extract(_STATUS).fill_null("completed")


def _constant(value: Any, state: CellState, count: int) -> ColumnFrame:
    encoding = encoding_of([value])
    kept = compact_json(value) if encoding in JSON_ENCODINGS and value is not None else value
    values = pl.Series("", [kept], dtype=_TYPES[encoding]).new_from_index(0, count)
    return ColumnFrame(
        Values(encoding, values), _repeat(state.status, count), _repeat(state.input_hash, count)
    )


def _repeat(value: str | None, count: int) -> pl.Series:
    return pl.Series("", [value], dtype=pl.String).new_from_index(0, count)


def _laid(piece: ColumnFrame, patch: Patch, column_no: int, first_row_no: int, count: int) -> ColumnFrame:
    values, hashes = piece.values, piece.hashes
    entries = list(entries_within(patch, column_no, first_row_no, first_row_no + count))
    statuses = _laid_statuses(piece.statuses, patch, column_no, first_row_no, entries)
    places = [row - first_row_no for row, _ in entries]
    written = [
        (place, entry) for place, (_, entry) in zip(places, entries, strict=True) if entry.value is not KEPT
    ]
    if written:
        at = [place for place, _ in written]
        values = with_values(values, at, [entry.value for _, entry in written])
        hashes = hashes.scatter(
            at, pl.Series([entry.state.input_hash for _, entry in written], dtype=pl.String)
        )
    return ColumnFrame(values, statuses, hashes)


def _laid_statuses(
    statuses: pl.Series,
    patch: Patch,
    column_no: int,
    first_row_no: int,
    entries: Sequence[tuple[int, Entry]],
) -> pl.Series:
    changed = patch.restated.get(column_no)
    if changed is not None:
        below = min(len(statuses), max(0, changed.end_row_no - first_row_no))
        statuses = pl.concat([_repeat(changed.state.status, below), statuses.slice(below)])
    if not entries:
        return statuses
    places = [row - first_row_no for row, _ in entries]
    return statuses.scatter(places, [entry.state.status for _, entry in entries])


def with_values(values: Values, places: Sequence[int], written: Sequence[Any]) -> Values:
    """Return values with some written anew; the encoding widens where it must."""
    encoding = encoding_of(written)
    if any(value is not None for value in written) and encoding != values.encoding:
        values = as_json(values)
    if values.encoding in JSON_ENCODINGS:
        written = [None if value is None else compact_json(value) for value in written]
    new = pl.Series("", written, dtype=_TYPES[values.encoding])
    return Values(values.encoding, values.series.scatter(list(places), new))


def as_json(values: Values) -> Values:
    """Spell values as compact JSON texts, whatever their encoding."""
    if values.encoding in JSON_ENCODINGS:
        return Values("json", values.series)
    if values.series.null_count() == len(values.series):
        return Values("json", values.series.cast(pl.String))
    spelled = [None if value is None else compact_json(value) for value in values.series.to_list()]
    return Values("json", pl.Series("", spelled, dtype=pl.String))


def joined_values(pieces: Sequence[Values]) -> Values:
    """Return runs of values one behind the other, in one encoding."""
    held = {one.encoding for one in pieces if one.series.null_count() < len(one.series)}
    encoding = next(iter(held)) if len(held) == 1 else "json" if held else pieces[0].encoding
    series = []
    for one in pieces:
        if one.encoding == encoding:
            series.append(one.series)
        elif one.series.null_count() == len(one.series):
            series.append(pl.Series("", [None], dtype=_TYPES[encoding]).new_from_index(0, len(one.series)))
        else:
            series.append(as_json(one).series)
    return Values(encoding, pl.concat(series) if len(series) > 1 else series[0])


def _joined(pieces: Sequence[ColumnFrame]) -> ColumnFrame:
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return null_frame(0)
    return ColumnFrame(
        joined_values([one.values for one in pieces]),
        pl.concat([one.statuses for one in pieces]),
        pl.concat([one.hashes for one in pieces]),
    )
