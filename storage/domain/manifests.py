"""Manifests: where the rows of a sheet stand, as ranges of row numbers over immutable sources.

A manifest is a value. Every change makes a new one that shares the sources of the old, so that a version
costs what changed and a restore costs nothing. Row numbers ascend in display order and are never reused.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate
from typing import Any

from storage.domain.cells import COMPLETED, CellState
from storage.domain.encodings import Encoding


@dataclass(frozen=True, slots=True)
class SegmentRef:
    """An immutable file: its key below the data root, the encoding of each field, when it was written."""

    key: str
    encodings: tuple[Encoding, ...]
    written_at: datetime


@dataclass(frozen=True, slots=True)
class Stored:
    """Values in field number `field` of a segment, beginning with its row `start`.

    `notes` is the number of a field that says what a value alone does not (`storage.domain.overlay.Note`);
    without it every cell is completed and was written when the segment was.
    """

    segment: SegmentRef
    field: int
    start: int
    notes: int | None = None


@dataclass(frozen=True, slots=True)
class Fill:
    """One value in every row, all in one state; without a time of its own, written when the rows came."""

    value: Any
    written_at: datetime | None = None
    state: CellState = COMPLETED


Source = Stored | Fill


@dataclass(frozen=True, slots=True)
class Part:
    """`count` consecutive row numbers and where each column's values are; a column not named is null.

    `added_at` is when the rows came. `offset` is how many rows the sources hold before the first: parts
    that were one share the mapping of their sources.
    """

    first_row_no: int
    count: int
    columns: Mapping[int, Source]
    added_at: datetime
    offset: int = 0

    @property
    def end_row_no(self) -> int:
        """The number after the last row's."""
        return self.first_row_no + self.count

    def cut(self, first_row_no: int, end_row_no: int) -> "Part":
        """Return the rows of this part from one number up to another."""
        first, end = max(first_row_no, self.first_row_no), min(end_row_no, self.end_row_no)
        step = first - self.first_row_no
        return replace(self, first_row_no=first, count=end - first, offset=self.offset + step)


@dataclass(frozen=True, slots=True)
class Span:
    """`count` rows of a part, beginning with its row `offset`."""

    part: Part
    offset: int
    count: int

    @property
    def first_row_no(self) -> int:
        return self.part.first_row_no + self.offset

    @property
    def source_offset(self) -> int:
        """How many rows the part's sources hold before the first of these."""
        return self.part.offset + self.offset


@dataclass(frozen=True, slots=True)
class Manifest:
    """The parts of a sheet in display order.

    Raises:
        ValueError: a part is empty, or row numbers do not ascend.
    """

    parts: tuple[Part, ...] = ()
    # index of the row after each part
    _ends: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        after = 0
        for part in self.parts:
            if part.count < 1 or part.first_row_no < after:
                raise ValueError("parts must hold rows, in the order of their numbers")
            after = part.first_row_no + part.count
        object.__setattr__(self, "_ends", tuple(accumulate(part.count for part in self.parts)))

    @property
    def row_count(self) -> int:
        return self._ends[-1] if self._ends else 0

    def spans(self, start: int, count: int) -> Iterator[Span]:
        """Yield what `count` rows from index `start` on are made of; less where the sheet ends."""
        end = min(start + count, self.row_count)
        at = bisect_right(self._ends, start)
        while start < end:
            part = self.parts[at]
            offset = start - (self._ends[at] - part.count)
            taken = min(part.count - offset, end - start)
            yield Span(part, offset, taken)
            start += taken
            at += 1

    def index_from(self, row_no: int) -> int:
        """Return the index of the first row whose number is at least `row_no` (`row_count` if none)."""
        at = bisect_left(self.parts, row_no, key=lambda part: part.first_row_no + part.count - 1)
        if at == len(self.parts):
            return self.row_count
        part = self.parts[at]
        return self._ends[at] - part.count + max(0, row_no - part.first_row_no)

    def find_index(self, row_no: int) -> int | None:
        """Return the index of a row number; None when the row is not of this manifest."""
        index = self.index_from(row_no)
        found = next(self.spans(index, 1), None)
        return index if found and found.first_row_no == row_no else None

    def appended(self, parts: Iterable[Part]) -> "Manifest":
        """Return this manifest with rows added at its end."""
        return Manifest((*self.parts, *parts))

    def without_rows(self, row_nos: Iterable[int]) -> "Manifest":
        """Return this manifest without the rows of these numbers; numbers it does not have change nothing."""
        gone = sorted(set(row_nos))
        kept: list[Part] = []
        at = 0
        for part in self.parts:
            first = part.first_row_no
            at = bisect_left(gone, first, at)
            while at < len(gone) and gone[at] < part.end_row_no:
                if gone[at] > first:
                    kept.append(part.cut(first, gone[at]))
                first = gone[at] + 1
                at += 1
            if first == part.first_row_no:
                kept.append(part)
            elif first < part.end_row_no:
                kept.append(part.cut(first, part.end_row_no))
        return Manifest(tuple(kept))

    def with_column(self, column_no: int, source_of: Callable[[Part], Source | None]) -> "Manifest":
        """Return this manifest with a column's values where `source_of` says; None means null.

        A source says where the values of its part begin, so parts that begin later in a source they share
        are asked each for itself.
        """
        return self._mapped(lambda part: _with_source(part, column_no, source_of(part)))

    def with_fill(self, column_no: int, fill: Fill) -> "Manifest":
        """Return this manifest with one value in every row of a column."""
        return self.with_fills({column_no: fill})

    def with_fills(self, fills: Mapping[int, Fill]) -> "Manifest":
        """Return this manifest with one value in every row of some columns, by number."""
        return self._relaid(lambda columns: {**columns, **fills})

    def without_columns(self, column_nos: Collection[int]) -> "Manifest":
        """Return this manifest without some columns."""
        gone = frozenset(column_nos)
        return self._relaid(lambda columns: {no: one for no, one in columns.items() if no not in gone})

    def _relaid(self, change: Callable[[Mapping[int, Source]], Mapping[int, Source]]) -> "Manifest":
        # parts that share their mapping go on sharing it
        changed: dict[int, Mapping[int, Source]] = {}
        for part in self.parts:
            if id(part.columns) not in changed:
                changed[id(part.columns)] = change(part.columns)
        return self._mapped(lambda part: replace(part, columns=changed[id(part.columns)]))

    def _mapped(self, change: Callable[[Part], Part]) -> "Manifest":
        return Manifest(tuple(change(part) for part in self.parts))

    def segments(self) -> dict[str, SegmentRef]:
        """Return the segments that it names, by key."""
        return {
            source.segment.key: source.segment
            for part in self.parts
            for source in part.columns.values()
            if isinstance(source, Stored)
        }


def _with_source(part: Part, column_no: int, source: Source | None) -> Part:
    columns = {no: _moved(one, part.offset) for no, one in part.columns.items() if no != column_no}
    if source is not None:
        columns[column_no] = source
    return replace(part, columns=columns, offset=0)


def _moved(source: Source, rows: int) -> Source:
    return replace(source, start=source.start + rows) if rows and isinstance(source, Stored) else source
