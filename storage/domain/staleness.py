"""Staleness: which cells an edit makes stale, planned from the graph alone."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from storage.domain.graph import Reads, levels

Rows = frozenset[int] | None
"""Row numbers of a sheet; None means all rows."""
Changed = Mapping[int, Rows]

MOST_ROWS_ONE_BY_ONE = 1_000
"""More rows than this turn stale as a whole column: their hashes tell later which had to."""


@dataclass(frozen=True, slots=True)
class StalePlan:
    """What a change reaches, by column, nearest first.

    `turning` are the rows that turn stale; `touched` are all that read what changed or turns stale, with
    those that are stale already.
    """

    turning: dict[int, Rows]
    touched: dict[int, Rows]


def plan_stale(
    reads: Reads[int],
    changed: Changed,
    translate: Callable[[int, int, Rows], Rows],
    turning: Callable[[int, Rows], Rows],
) -> StalePlan:
    """Return the rows of every column that reads what changed, directly or not.

    `translate(source, reader, rows)` says which rows of a reader's sheet read rows of the source's;
    `turning(column, rows)` which of them are not stale yet. What reads a stale cell is stale already, or
    failed for that reason, so nothing goes on from there.
    """
    plan = StalePlan({}, {})
    chosen = list(dict.fromkeys([*changed, *reads]))
    for level in levels(reads, chosen):
        for column_no in level:
            if column_no not in reads:
                continue
            affected = [
                translate(source, column_no, rows)
                for source in reads[column_no]
                for held in (changed, plan.turning)
                if (rows := held.get(source, _NONE)) is None or rows
            ]
            rows = _union(affected)
            if rows is None or rows:
                plan.touched[column_no] = rows
                fresh = turning(column_no, rows)
                if fresh is None or fresh:
                    plan.turning[column_no] = fresh
    return plan


_NONE: frozenset[int] = frozenset()


def _union(sets: Iterable[Rows]) -> Rows:
    joined: set[int] = set()
    for one in sets:
        if one is None:
            return None
        joined |= one
    return None if len(joined) > MOST_ROWS_ONE_BY_ONE else frozenset(joined)
