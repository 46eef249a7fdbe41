"""Where the results of a computation stand: segments over the rows that the sheet had when it was read."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from storage.domain.manifests import Manifest, Part, SegmentRef, Source, Stored

VALUE_FIELD, NOTE_FIELD = 0, 1


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment that holds a column's rows from row index `first` of the base on."""

    segment: SegmentRef
    first: int


def with_results(head: Manifest, base: Manifest, column_no: int, pieces: Sequence[Piece]) -> Manifest:
    """Return `head` with a column's rows in `pieces`, which hold all rows of `base` in order.

    Rows that were deleted since are left out; rows that came since stay as they are.
    """
    firsts = [piece.first for piece in pieces]
    edges = [span.first_row_no for first in firsts for span in base.spans(first, 1)]
    end = base.parts[-1].end_row_no if base.parts else 0

    def source_of(part: Part) -> Source | None:
        index = base.find_index(part.first_row_no) if part.first_row_no < end else None
        if index is None:
            return _kept(part, column_no)
        piece = pieces[bisect_right(firsts, index) - 1]
        return Stored(piece.segment, VALUE_FIELD, index - piece.first, NOTE_FIELD)

    return cut_at(head, [*edges, end]).with_column(column_no, source_of)


def cut_at(manifest: Manifest, row_nos: Iterable[int]) -> Manifest:
    """Return the same rows in parts of which none holds a row number and the one before it."""
    wanted = sorted(set(row_nos))
    parts: list[Part] = []
    for part in manifest.parts:
        inside = [no for no in wanted if part.first_row_no < no < part.end_row_no]
        if not inside:
            parts.append(part)
            continue
        bounds = [part.first_row_no, *inside, part.end_row_no]
        parts += [part.cut(first, last) for first, last in pairwise(bounds)]
    return Manifest(tuple(parts))


def _kept(part: Part, column_no: int) -> Source | None:
    source = part.columns.get(column_no)
    if isinstance(source, Stored):
        return replace(source, start=source.start + part.offset)
    return source
