"""Which segments of logs are rewritten together: the rules of compaction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

MERGE_FILES = 8
"""So many files of a size become one of the next: a log is rewritten once a size, not once a flush."""
MOST_BYTES = 192 * 1_048_576
"""No merge makes a larger file."""
_SMALLEST_BYTES = 1_048_576
REWRITE_AFTER = timedelta(hours=6)
"""Deleted logs leave the files this long after their deletion: more of them are then rewritten at once."""
REWRITE_ROWS = 50_000
"""So many deleted logs are not waited with."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment as compaction sees it; `dirty`: it holds logs that must leave it now.

    `fresh`: it came in a burst that is still under way, so that it may wait.
    """

    day: date
    bytes: int
    dirty: bool = False
    fresh: bool = False


def plan_runs(pieces: Sequence[Piece], today: date) -> list[range]:
    """Return which neighbours, by place in the order of ids, become one file each.

    A day that is over is packed into as few files as fit; of today's files those of one size are merged once
    there are enough of them and not all are fresh. A dirty piece is rewritten in any case, alone if need be.
    """
    runs: list[range] = []
    for day in _days(pieces):
        found = _packed(pieces, day) if pieces[day.start].day < today else _tiered(pieces, day)
        taken = {place for run in found for place in run}
        runs += found
        runs += [range(i, i + 1) for i in day if pieces[i].dirty and i not in taken]
    return sorted(runs, key=lambda run: run.start)


def _days(pieces: Sequence[Piece]) -> Iterator[range]:
    start = 0
    for place in range(1, len(pieces) + 1):
        if place == len(pieces) or pieces[place].day != pieces[start].day:
            yield range(start, place)
            start = place


def _packed(pieces: Sequence[Piece], places: range) -> list[range]:
    """Fill files from the left as far as the neighbours fit."""
    runs, start, size = [], places.start, 0
    for place in places:
        if size and size + pieces[place].bytes > MOST_BYTES:
            runs.append(range(start, place))
            start, size = place, 0
        size += pieces[place].bytes
    runs.append(range(start, places.stop))
    return [run for run in runs if len(run) > 1]


def _tiered(pieces: Sequence[Piece], places: range) -> list[range]:
    """Merge neighbours up to the smallest size of which there are enough."""
    tiers = {tier_of(pieces[place].bytes) for place in places}
    for tier in sorted(tiers):
        runs = [
            run
            for some in _up_to(pieces, places, tier)
            for run in _packed(pieces, some)
            if sum(tier_of(pieces[place].bytes) == tier for place in run) >= MERGE_FILES
            and not all(pieces[place].fresh for place in run)
        ]
        if runs:
            return runs
    return []


def _up_to(pieces: Sequence[Piece], places: range, tier: int) -> Iterator[range]:
    start = places.start
    for place in range(places.start, places.stop + 1):
        if place == places.stop or tier_of(pieces[place].bytes) > tier:
            if place > start:
                yield range(start, place)
            start = place + 1


def tier_of(size: int) -> int:
    """The class of a file's size: 0 up to 8 MiB, each next one eight times as large."""
    tier, limit = 0, _SMALLEST_BYTES * MERGE_FILES
    while size >= limit:
        tier, limit = tier + 1, limit * MERGE_FILES
    return tier
