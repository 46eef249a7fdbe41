"""Results of a block of rows in the forms that they are kept in: entries of a patch, rows of a segment."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from storage.domain.cells import COMPLETED, restated
from storage.domain.computed import Computed, Stamp
from storage.domain.encodings import JSON_ENCODINGS
from storage.domain.overlay import Entry, Note
from storage.domain.results import Values
from storage.engine.column_frames import ColumnFrame, as_json
from storage.engine.sheet_rows import Written


@dataclass(frozen=True, slots=True)
class SegmentRows:
    """Rows as a segment keeps them."""

    values: Values
    notes: pl.Series
    statuses: Counter[str]


def value_list(values: Values) -> list[Any]:
    """Return JSON values themselves."""
    kept = values.series.to_list()
    if values.encoding not in JSON_ENCODINGS:
        return list(kept)
    return [None if text is None else json.loads(text) for text in kept]


def entries(
    failed: ColumnFrame, row_nos: Sequence[int], computed: Computed, stamp: Stamp, now: datetime
) -> Iterator[tuple[int, Entry]]:
    """Yield the entries of the cells that were tried, by row number; a failed one keeps its value.

    `failed` are the cells that failed, in order, as they were.
    """
    values, hashes = value_list(computed.values), computed.hashes.to_list()
    kept = zip(value_list(failed.values), failed.hashes.to_list(), strict=True)
    for at, place in enumerate(computed.places):
        error, metrics = computed.errors.get(at), computed.metrics.get(at)
        if error is None:
            state = stamp.done(hashes[at], metrics, cached=at in computed.cached)
            yield row_nos[place], Entry(values[at], now, state)
        else:
            value, old_hash = next(kept)
            yield row_nos[place], Entry(value, now, stamp.failed(error, old_hash, metrics))


def failed_cells(own: ColumnFrame, computed: Computed) -> ColumnFrame:
    """Return the cells that failed, in order, as they were: copies, which keep no others in memory."""
    places = pl.Series([computed.places[at] for at in sorted(computed.errors)], dtype=pl.UInt32)
    values, statuses, hashes = (
        pl.Series("", one.gather(places).to_list() if len(places) else [], dtype=one.dtype)
        for one in (own.values.series, own.statuses, own.hashes)
    )
    return ColumnFrame(Values(own.values.encoding, values), statuses, hashes)


def untold_places(own: ColumnFrame, computed: Computed) -> Sequence[int]:
    """Return the unchanged places that do not say that they are completed."""
    if not len(computed.unchanged) or (own.statuses == COMPLETED.status).all(ignore_nulls=False):
        return ()
    places = pl.Series(list(computed.unchanged), dtype=pl.UInt32)
    return places.filter(own.statuses.gather(places) != COMPLETED.status).to_list()


def changed_places(own: ColumnFrame, computed: Computed) -> pl.Series:
    """Return the places in the block whose value or success is another now: what reads them is stale."""
    places = pl.Series(list(computed.places), dtype=pl.UInt32)
    old = own.values.series.gather(places)
    new = computed.values
    if old.null_count() == len(old):
        differs = new.series.is_not_null()
    elif own.values.encoding == new.encoding:
        differs = old.ne_missing(new.series)
    else:
        left, right = as_json(Values(own.values.encoding, old)), as_json(new)
        differs = left.series.ne_missing(right.series)
    failed = pl.Series([False]).new_from_index(0, len(places))
    if computed.errors:
        failed = failed.scatter(list(computed.errors), values=True)
    newly = own.statuses.gather(places) != "failed"
    return places.filter((failed & newly) | (~failed & (differs | ~newly)))


def segment_rows(
    own: ColumnFrame,
    places: Sequence[int],
    computed: Computed,
    stamp: Stamp,
    standing: pl.Series | None,
    others: Sequence[tuple[int, Written]],
) -> SegmentRows:
    """Lay results over all rows of a range; `own` and `places` (of the visited) count within it.

    Of the cells that were not tried, `others` are those that are told one by one, by place, as they read
    now; for the rest, all of them unchanged, `standing` has the notes.
    """
    count = len(own.values)
    at = pl.Series([places[place] for place in computed.places], dtype=pl.UInt32)
    tried = sorted(computed.errors)
    good = pl.Series([True]).new_from_index(0, len(at))
    if tried:
        good = good.scatter(tried, values=False)
    values = _scattered(own.values, at.filter(good), computed.values, good)
    notes = pl.Series("note", [None], dtype=pl.String).new_from_index(0, count)
    if standing is not None:
        notes = standing
    notes = notes.scatter(at, _plain_notes(computed.hashes, stamp))
    special = _special_notes(own, at, computed, stamp) | _other_notes(others, computed, places)
    if special:
        notes = notes.scatter(list(special), pl.Series(list(special.values()), dtype=pl.String))
    told = len(at) + len(others)
    statuses = _counted(computed, others, places) + Counter({"completed": count - told})
    return SegmentRows(values, notes, +statuses)


def _scattered(old: Values, at: pl.Series, new: Values, good: pl.Series) -> Values:
    if len(at) == len(old):
        return new
    written = new.series.filter(good)
    if old.encoding != new.encoding:
        if old.series.null_count() == len(old.series):
            old = Values(new.encoding, pl.Series([None], dtype=new.series.dtype).new_from_index(0, len(old)))
        else:
            old, written = as_json(old), as_json(Values(new.encoding, written)).series
    return Values(old.encoding, old.series.scatter(at, written))


def _plain_notes(hashes: pl.Series, stamp: Stamp) -> pl.Series:
    """Spell the notes of cells that have no more to say than their hash and their stamp."""
    spelled = json.dumps(Note(state=stamp.done("")).to_json(), separators=(",", ":"))
    before, after = spelled.split('"input_hash":""')
    frame = pl.DataFrame({"hash": hashes})
    joined = pl.concat_str([pl.lit(f'{before}"input_hash":"'), pl.col("hash"), pl.lit(f'"{after}')])
    return frame.select(joined).to_series()


def _special_notes(own: ColumnFrame, at: pl.Series, computed: Computed, stamp: Stamp) -> dict[int, str]:
    found: dict[int, str] = {}
    wanted = set(computed.errors) | set(computed.metrics) | computed.cached
    for place in wanted:
        row = at[place]
        error, metrics = computed.errors.get(place), computed.metrics.get(place)
        if error is None:
            state = stamp.done(computed.hashes[place], metrics, cached=place in computed.cached)
        else:
            state = stamp.failed(error, own.hashes[row], metrics)
        found[row] = _spelled(Note(state=state))
    return found


def _other_notes(
    others: Sequence[tuple[int, Written]], computed: Computed, places: Sequence[int]
) -> dict[int, str]:
    good = {places[place] for place in computed.unchanged}
    return {
        row: _spelled(Note(at, restated(state, COMPLETED) if row in good else state))
        for row, (_, _, at, state) in others
    }


def _spelled(note: Note) -> str:
    return json.dumps(note.to_json(), ensure_ascii=False, separators=(",", ":"))


def _counted(
    computed: Computed, others: Sequence[tuple[int, Written]], places: Sequence[int]
) -> Counter[str]:
    good = {places[place] for place in computed.unchanged}
    counts = Counter(
        {"completed": len(computed.places) - len(computed.errors), "failed": len(computed.errors)}
    )
    counts.update("completed" if row in good else written[3].status for row, written in others)
    return +counts
