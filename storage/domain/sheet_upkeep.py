"""Upkeep of a sheet: what is written anew so that its overlay and its small segments become few.

Nothing published is changed: a rewrite makes new segments that hold what readers see, and a new manifest
names them. It is planned on one state and laid on the one that is there when it is done, so that callers go
on writing meanwhile.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from storage.domain.manifests import Manifest, Part, Source, Stored
from storage.domain.overlay import Entry, Overlay, Patch, merged

MOST_PIECES = 64
"""More parts than this that could be fewer are joined."""
_SMALL_ROWS = 65_536
_JOINED_ROWS = 262_144
_LEAST_JOINTS = 8


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Columns of consecutive rows to be written anew: row numbers from `first_row_no` up to `end_row_no`."""

    first_row_no: int
    end_row_no: int
    column_nos: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A rewrite that was done: where each column's values are, from the first of the rows on."""

    rewrite: Rewrite
    sources: Mapping[int, Stored]


def count_pieces(manifest: Manifest) -> int:
    """Return how many parts could be fewer: they go on where another ends, or have other sources than it."""
    return sum(_is_joint(one, other) for one, other in pairwise(manifest.parts))


def _is_joint(one: Part, other: Part) -> bool:
    # rows deleted between them keep parts of the same sources apart for ever
    return one.end_row_no == other.first_row_no or one.columns is not other.columns


def plan_rewrites(
    manifest: Manifest, overlay: Overlay, column_nos: Sequence[int], *, fold: bool
) -> list[Rewrite]:
    """Say what to write anew: runs of small parts as one, and with `fold` also what the overlay wrote over.

    A column whose cells were given a state as one keeps its entries in the overlay: they lie on top of that.
    """
    joined = _joins(manifest, tuple(column_nos)) if count_pieces(manifest) > MOST_PIECES else []
    if not fold:
        return joined
    held = flat(overlay)
    free = {no: sorted(held.cells[no]) for no in column_nos if no in held.cells and no not in held.restated}
    folded = [one for one in _folds(manifest, free) if not any(_within(one, join) for join in joined)]
    return sorted([*joined, *folded], key=lambda one: one.first_row_no)


def flat(overlay: Overlay) -> Patch:
    """Return an overlay as one patch."""
    held = Patch()
    for one in overlay.patches:
        held = merged(held, one.patch)
    return held


def _within(one: Rewrite, other: Rewrite) -> bool:
    return other.first_row_no <= one.first_row_no and one.end_row_no <= other.end_row_no


def _joins(manifest: Manifest, column_nos: tuple[int, ...]) -> list[Rewrite]:
    found = []
    for run in _small_runs(manifest):
        joints = sum(_is_joint(one, other) for one, other in pairwise(run))
        if joints >= _LEAST_JOINTS:
            found.append(Rewrite(run[0].first_row_no, run[-1].end_row_no, column_nos))
    return found


def _small_runs(manifest: Manifest) -> Iterator[list[Part]]:
    run: list[Part] = []
    rows = 0
    for part in manifest.parts:
        if run and (part.count >= _SMALL_ROWS or rows + part.count > _JOINED_ROWS):
            yield run
            run, rows = [], 0
        if part.count < _SMALL_ROWS:
            run.append(part)
            rows += part.count
    if run:
        yield run


def _folds(manifest: Manifest, rows: Mapping[int, Sequence[int]]) -> Iterator[Rewrite]:
    """Yield the blocks of parts in which columns have entries: up to 65,536 row numbers each."""
    for part in manifest.parts:
        block = part.first_row_no
        while block < part.end_row_no:
            end = min(part.end_row_no, (block // _SMALL_ROWS + 1) * _SMALL_ROWS)
            touched = tuple(no for no, held in rows.items() if _has_some(held, block, end))
            if touched:
                yield Rewrite(block, end, touched)
            block = end


def _has_some(rows: Sequence[int], first: int, end: int) -> bool:
    at = bisect_left(rows, first)
    return at < len(rows) and rows[at] < end


def relaid(
    planned: Manifest, now_there: Manifest, done: Sequence[Rewritten], live: Collection[int]
) -> tuple[Manifest, set[int]]:
    """Lay rewrites that were planned on one manifest on another; return it and the columns left alone.

    Rows that went stay gone, rows and columns that came stay as they are. Left alone is a column that is not
    `live` any more, or that another write gave other sources meanwhile.
    """
    left = _replaced_since(planned, now_there, done)
    left |= {no for one in done for no in one.sources if no not in live}
    laying = _Laying(planned, left)
    parts: list[Part] = []
    for part in now_there.parts:
        pieces = [part]
        for one in done:
            pieces = [cut for piece in pieces for cut in laying.cut(piece, one)]
        parts += pieces
    return Manifest(tuple(_coalesced(parts))), left


def _replaced_since(planned: Manifest, now_there: Manifest, done: Sequence[Rewritten]) -> set[int]:
    replaced: set[int] = set()
    for one in done:
        first, end = one.rewrite.first_row_no, one.rewrite.end_row_no
        for old in _parts_within(planned, first, end):
            for new in _parts_within(now_there, old.first_row_no, old.end_row_no):
                replaced |= {
                    no
                    for no in one.sources
                    if no not in replaced and _source(old, new, no) != _source(new, new, no)
                }
    return replaced


def _source(part: Part, at: Part, column_no: int) -> Source | None:
    source = part.columns.get(column_no)
    if isinstance(source, Stored):
        return replace(source, start=source.start + part.offset + at.first_row_no - part.first_row_no)
    return source


def _parts_within(manifest: Manifest, first: int, end: int) -> Iterator[Part]:
    at = bisect_left(manifest.parts, first, key=lambda part: part.end_row_no - 1)
    while at < len(manifest.parts) and manifest.parts[at].first_row_no < end:
        yield manifest.parts[at].cut(first, end)
        at += 1


class _Laying:
    """Puts new sources in the place of old ones; parts that come to have the same ones share a mapping."""

    def __init__(self, planned: Manifest, left: Collection[int]) -> None:
        self._planned = planned
        self._left = left
        self._known: dict[tuple[int, int, int], Mapping[int, Source]] = {}
        self._shared: dict[tuple[tuple[int, Source], ...], Mapping[int, Source]] = {}

    def cut(self, part: Part, one: Rewritten) -> Iterator[Part]:
        """Yield the pieces of a part before, within and after a rewrite."""
        first, end = one.rewrite.first_row_no, one.rewrite.end_row_no
        if part.end_row_no <= first or end <= part.first_row_no:
            yield part
            return
        if part.first_row_no < first:
            yield part.cut(part.first_row_no, first)
        within = part.cut(first, end)
        # where the rows stand among those that were written
        place = self._planned.index_from(within.first_row_no) - self._planned.index_from(first)
        columns = self._columns(part, within.offset - place, one)
        yield replace(within, columns=columns, offset=place)
        if end < part.end_row_no:
            yield part.cut(end, part.end_row_no)

    def _columns(self, part: Part, shift: int, one: Rewritten) -> Mapping[int, Source]:
        key = (id(part.columns), shift, id(one))
        if key not in self._known:
            kept = {no: _shifted(source, shift) for no, source in part.columns.items()}
            new = {no: source for no, source in one.sources.items() if no not in self._left}
            self._known[key] = self._sharing({**kept, **new})
        return self._known[key]

    def _sharing(self, columns: Mapping[int, Source]) -> Mapping[int, Source]:
        if not all(isinstance(source, Stored) for source in columns.values()):
            return columns
        return self._shared.setdefault(tuple(sorted(columns.items(), key=lambda item: item[0])), columns)


def _shifted(source: Source, rows: int) -> Source:
    return replace(source, start=source.start + rows) if rows and isinstance(source, Stored) else source


def _coalesced(parts: Sequence[Part]) -> Iterator[Part]:
    """Yield parts with those that go on in the same sources as one."""
    last: Part | None = None
    for part in parts:
        if last is not None and _goes_on(last, part):
            last = replace(last, count=last.count + part.count)
            continue
        if last is not None:
            yield last
        last = part
    if last is not None:
        yield last


def _goes_on(one: Part, other: Part) -> bool:
    if one.end_row_no != other.first_row_no or other.offset != one.offset + one.count:
        return False
    if one.columns != other.columns:
        return False
    # what stands in no segment was written when its rows came
    return one.added_at == other.added_at or all(
        isinstance(source, Stored) for source in one.columns.values()
    )


def without_folded(
    planned: Overlay, now_there: Overlay, manifest: Manifest, done: Sequence[Rewritten], left: Collection[int]
) -> Patch | None:
    """Return what stays of an overlay when rewrites planned on another are done; None if they do not fit.

    They do not fit when a cell that was folded is not in the overlay any more: an earlier state was restored.
    """
    old, new = flat(planned), flat(now_there)
    cells = {no: dict(entries) for no, entries in new.cells.items()}
    for one in done:
        for no in one.sources:
            if no in left or no in old.restated or no in new.restated:
                continue
            held = cells.get(no, {})
            for row in _rows_within(old.cells.get(no, {}), one.rewrite):
                if row in held:
                    if held[row] == old.cells[no][row]:
                        del held[row]
                elif manifest.find_index(row) is not None:
                    return None
    return Patch({no: held for no, held in cells.items() if held}, new.restated)


def _rows_within(entries: Mapping[int, Entry], rewrite: Rewrite) -> list[int]:
    return [row for row in entries if rewrite.first_row_no <= row < rewrite.end_row_no]
