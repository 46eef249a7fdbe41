"""The graph of columns: who reads whom, across sheets. Pure, and without recursion: chains have thousands."""

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)
Reads = Mapping[Node, Collection[Node]]
"""What each column reads; a column that is not named reads nothing."""


def find_cycle(reads: Reads[Node]) -> list[Node] | None:
    """Return a cycle, each column reading the next and the last the first; None when there is none."""
    try:
        TopologicalSorter(reads).prepare()
    except CycleError as error:
        # graphlib names it the other way round, its first node also at the end
        return list(reversed(error.args[1]))[:-1]
    return None


def levels(reads: Reads[Node], chosen: Collection[Node]) -> Iterator[list[Node]]:
    """Yield the chosen columns in the order of computation: what a level reads of them stands before it.

    Paths through columns that are not chosen count as well. The columns of a level keep the order of
    `chosen`.
    """
    place = {node: at for at, node in enumerate(chosen)}
    depth: dict[Node, int] = {}
    for node in TopologicalSorter(_closure(reads, chosen)).static_order():
        below = [depth[one] + (one in place) for one in reads.get(node, ())]
        depth[node] = max(below, default=0)
    found: dict[int, list[Node]] = {}
    for node in sorted(place, key=place.__getitem__):
        found.setdefault(depth[node], []).append(node)
    for at in sorted(found):
        yield found[at]


def chosen_sources(reads: Reads[Node], chosen: Collection[Node]) -> dict[Node, frozenset[Node]]:
    """Return which chosen columns each of them reads, directly or through columns that are not chosen."""
    among = set(chosen)
    behind: dict[Node, frozenset[Node]] = {}
    for node in TopologicalSorter(_closure(reads, chosen)).static_order():
        found: set[Node] = set()
        for one in reads.get(node, ()):
            found |= {one} if one in among else behind[one]
        behind[node] = frozenset(found)
    return {node: behind[node] for node in chosen}


def _closure(reads: Reads[Node], chosen: Iterable[Node]) -> dict[Node, Collection[Node]]:
    seen: dict[Node, Collection[Node]] = {}
    left = list(chosen)
    while left:
        node = left.pop()
        if node not in seen:
            seen[node] = reads.get(node, ())
            left.extend(seen[node])
    return seen


def descendants(reads: Reads[Node], start: Iterable[Node]) -> list[Node]:
    """Return every column that reads one of `start`, directly or not, nearest first; `start` excluded."""
    readers: dict[Node, list[Node]] = {}
    for node, sources in reads.items():
        for source in sources:
            readers.setdefault(source, []).append(node)
    first = list(start)
    seen = set(first)
    found: list[Node] = []
    left = deque(first)
    while left:
        for reader in readers.get(left.popleft(), ()):
            if reader not in seen:
                seen.add(reader)
                found.append(reader)
                left.append(reader)
    return found
