"""Ranks order the columns of a sheet: integers with gaps, so that a column joins without moving others."""

from collections.abc import Sequence
from dataclasses import dataclass

RANK_GAP = 1_024


@dataclass(frozen=True, slots=True)
class Placed:
    """The rank of a column that joins, and the ranks of the others in their order; None: they stay."""

    rank: int
    renumbered: tuple[int, ...] | None = None


def ranks_after(last: int, count: int) -> list[int]:
    """Return the ranks of columns added at the end, with gaps for later ones between."""
    return [last + RANK_GAP * step for step in range(1, count + 1)]


def place(ranks: Sequence[int], position: int | None) -> Placed:
    """Return where a column goes among others of ascending ranks; beyond the end, or None, is the end.

    Where no gap is left all are renumbered.
    """
    at = len(ranks) if position is None else min(position, len(ranks))
    if at == len(ranks):
        return Placed((ranks[-1] if ranks else 0) + RANK_GAP)
    below = ranks[at - 1] if at else 0
    rank = (below + ranks[at]) // 2
    if below < rank < ranks[at]:
        return Placed(rank)
    fresh = ranks_after(0, len(ranks) + 1)
    return Placed(fresh[at], (*fresh[:at], *fresh[at + 1 :]))
