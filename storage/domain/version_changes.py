"""What changed between two states of a sheet, told from manifests and overlays where these tell it.

Row numbers and column numbers stay, so two manifests are laid side by side by row number: where both name
one source nothing was written, whatever the size. Only where sources differ, and in the cells of patches
that one state has and the other has not, values must be compared.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from storage.domain.columns import Column
from storage.domain.manifests import Manifest, Part, Source, Stored
from storage.domain.overlay import KEPT, Entry, Overlay, entries_of

_ROWS_AT_ONCE, _CELLS_AT_ONCE = 4_096, 100_000

CellPlaces = dict[int, set[int]]
"""Row numbers by column number."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """How many rows one state has that the other has not."""

    added: int
    deleted: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive rows of both states and columns."""

    first_row_no: int
    end_row_no: int
    column_nos: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CellChange:
    """A cell whose value differs; `row_index` is its place in the later state."""

    cell_id: UUID
    column_id: UUID
    row_index: int
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class SheetDiff:
    """What differs between two versions; `changes` are the first of `changed_count`."""

    columns_added: Sequence[Column]
    columns_removed: Sequence[Column]
    columns_changed: Sequence[tuple[Column, Column]]
    rows: RowChanges
    changed_count: int
    changes: Sequence[CellChange]


def row_changes(before: Manifest, after: Manifest) -> RowChanges:
    common = sum(end - first for first, end, _, _ in _side_by_side(before, after))
    return RowChanges(after.row_count - common, before.row_count - common)


def column_changes(
    before: Sequence[Column], after: Sequence[Column]
) -> tuple[list[Column], list[Column], list[tuple[Column, Column]]]:
    """Return the columns that were added, removed and changed (before, after), each in its order."""
    old, new = {column.no: column for column in before}, {column.no: column for column in after}
    added = [column for column in after if column.no not in old]
    removed = [column for column in before if column.no not in new]
    changed = [(old[column.no], column) for column in after if column.no in old and old[column.no] != column]
    return added, removed, changed


def differing_columns(before: Manifest, after: Manifest, column_nos: Sequence[int]) -> set[int]:
    """Return the columns whose sources differ in rows of both states; overlays are not looked at."""
    found: set[int] = set()
    for first, _, old, new in _side_by_side(before, after):
        found |= _differing(old, new, first, [no for no in column_nos if no not in found])
    return found


def stretches_to_compare(
    before: Manifest, after: Manifest, written: CellPlaces, column_nos: Sequence[int]
) -> Iterator[Stretch]:
    """Yield what must be read to compare the cells of rows and columns of both states; no cell twice.

    That is where sources differ, and the places that patches wrote; in pieces of up to 4,096 rows.
    """
    places = {no: sorted(written[no]) for no in column_nos if no in written}
    for first, end, old, new in _side_by_side(before, after):
        differing = sorted(_differing(old, new, first, column_nos))
        if differing:
            step = min(_ROWS_AT_ONCE, max(1, _CELLS_AT_ONCE // len(differing)))
            for start in range(first, end, step):
                yield Stretch(start, min(start + step, end), tuple(differing))
        for no, rows in places.items():
            if no not in differing:
                yield from _pieces(rows[bisect_left(rows, first) : bisect_left(rows, end)], no)


def _pieces(rows: Sequence[int], column_no: int) -> Iterator[Stretch]:
    at = 0
    while at < len(rows):
        beyond = bisect_left(rows, rows[at] + _ROWS_AT_ONCE, at)
        yield Stretch(rows[at], rows[beyond - 1] + 1, (column_no,))
        at = beyond


def _differing(old: Part, new: Part, row_no: int, column_nos: Iterable[int]) -> set[int]:
    if old == new:
        return set()
    return {no for no in column_nos if _at(old, row_no, no) != _at(new, row_no, no)}


def _side_by_side(before: Manifest, after: Manifest) -> Iterator[tuple[int, int, Part, Part]]:
    """Yield the ranges of row numbers that both have, with the part of each."""
    old, new = iter(before.parts), iter(after.parts)
    one, other = next(old, None), next(new, None)
    while one is not None and other is not None:
        first = max(one.first_row_no, other.first_row_no)
        end = min(one.end_row_no, other.end_row_no)
        if first < end:
            yield first, end, one, other
        if one.end_row_no <= other.end_row_no:
            one = next(old, None)
        else:
            other = next(new, None)


def _at(part: Part, row_no: int, column_no: int) -> tuple[Any, ...]:
    """Return what says where a column's values are from a row on; equal for equal cells only."""
    source: Source | None = part.columns.get(column_no)
    if isinstance(source, Stored):
        start = source.start + part.offset + row_no - part.first_row_no
        return source.segment.key, source.field, source.notes, start
    at: datetime | None = part.added_at
    if source is None:
        return None, at
    return type(source.value), source.value, source.state, source.written_at or at


def written_places(before: Overlay, after: Overlay) -> CellPlaces:
    """Return the cells whose values patches of one overlay write otherwise than those of the other."""
    if after.numbers[: len(before.patches)] == before.numbers:
        # the usual case: what was written since, and nothing merged
        old: Mapping[int, Mapping[int, Entry]] = {}
        new = entries_of(Overlay(after.patches[len(before.patches) :]))
    else:
        old, new = entries_of(before), entries_of(after)
    found: CellPlaces = {}
    for no in old.keys() | new.keys():
        one, other = old.get(no, {}), new.get(no, {})
        rows = {row for row in one.keys() | other.keys() if _differ(one.get(row), other.get(row))}
        if rows:
            found[no] = rows
    return found


def _differ(one: Entry | None, other: Entry | None) -> bool:
    values = [(entry.value, entry.written_at) for entry in (one, other) if entry and entry.value is not KEPT]
    return len(values) == 1 or (len(values) > 1 and values[0] != values[1])
