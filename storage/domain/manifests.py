"""Manifests: where the rows of a sheet stand, as ranges of row numbers over immutable sources.

A manifest is a value. Every change makes a new one that shares the sources of the old, so that a version
costs what changed and a restore costs nothing. Row numbers ascend in display order and are never reused.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from typing import Any

from storage.domain.encodings import Encoding


@dataclass(frozen=True, slots=True)
class SegmentRef:
    """An immutable file: its key below the data root, the encoding of each field, when it was written."""

    key: str
    encodings: tuple[Encoding, ...]
    written_at: datetime


@dataclass(frozen=True, slots=True)
class Stored:
    """Values in field number `field` of a segment, beginning with its row `start`."""

    segment: SegmentRef
    field: int
    start: int


@dataclass(frozen=True, slots=True)
class Fill:
    """One value in every row."""

    value: Any
    written_at: datetime


Source = Stored | Fill


@dataclass(frozen=True, slots=True)
class Part:
    """`count` consecutive row numbers and where each column's values are; a column not named is null.

    `added_at` is when the rows came.
    """

    first_row_no: int
    count: int
    columns: Mapping[int, Source]
    added_at: datetime


@dataclass(frozen=True, slots=True)
class Span:
    """`count` rows of a part, beginning with its row `offset`."""

    part: Part
    offset: int
    count: int

    @property
    def first_row_no(self) -> int:
        return self.part.first_row_no + self.offset


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

    def segments(self) -> dict[str, SegmentRef]:
        """Return the segments that it names, by key."""
        return {
            source.segment.key: source.segment
            for part in self.parts
            for source in part.columns.values()
            if isinstance(source, Stored)
        }
