"""Staleness: which cells an edit makes stale, planned from the graph alone."""

from collections.abc import Callable, Iterable, Mapping

from storage.domain.graph import Reads, levels

Rows = frozenset[int] | None
"""Row numbers of a sheet; None means all rows."""
Changed = Mapping[int, Rows]

MOST_ROWS_ONE_BY_ONE = 1_000
"""More rows than this turn stale as a whole column: their hashes tell later which had to."""


def plan_stale(
    reads: Reads[int], changed: Changed, translate: Callable[[int, int, Rows], Rows]
) -> dict[int, Rows]:
    """Return the rows of every column that reads what changed, directly or not, nearest first.

    `translate(source, reader, rows)` says which rows of a reader's sheet read rows of the source's.
    """
    found: dict[int, Rows] = {}
    chosen = list(dict.fromkeys([*changed, *reads]))
    for level in levels(reads, chosen):
        for column_no in level:
            if column_no not in reads:
                continue
            sources = [one for one in reads[column_no] if one in changed or one in found]
            affected = [
                translate(one, column_no, _union([held[one] for held in (changed, found) if one in held]))
                for one in sources
            ]
            rows = _union(affected)
            if rows is None or rows:
                found[column_no] = rows
    return found


def _union(sets: Iterable[Rows]) -> Rows:
    joined: set[int] = set()
    for one in sets:
        if one is None:
            return None
        joined |= one
    return None if len(joined) > MOST_ROWS_ONE_BY_ONE else frozenset(joined)
