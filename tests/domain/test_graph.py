"""The graph of columns: orders, cycles and descendants, compared with plain searches."""

from hypothesis import given
from hypothesis import strategies as st

from storage.domain.graph import descendants, find_cycle, levels

GRAPHS = st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=4, unique=True), max_size=10)
ACYCLIC = GRAPHS.map(
    lambda graph: {node: [one for one in reads if one < node] for node, reads in graph.items()}
)


def reachable(graph: dict[int, list[int]], start: int) -> set[int]:
    found: set[int] = set()
    left = list(graph.get(start, ()))
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += graph.get(node, ())
    return found


@given(GRAPHS)
def test_a_cycle_is_found_where_there_is_one_and_can_be_walked(graph: dict[int, list[int]]) -> None:
    cycle = find_cycle(graph)
    assert (cycle is not None) == any(node in reachable(graph, node) for node in graph)
    for node, read in zip(cycle or [], [*(cycle or [])[1:], *(cycle or [])[:1]], strict=True):
        assert read in graph[node]


@given(ACYCLIC, st.lists(st.integers(0, 9), unique=True))
def test_levels_hold_each_chosen_column_once_behind_all_it_reads(
    graph: dict[int, list[int]], chosen: list[int]
) -> None:
    found = list(levels(graph, chosen))
    assert sorted(node for level in found for node in level) == sorted(chosen)
    depth = {node: at for at, level in enumerate(found) for node in level}
    for node in chosen:
        for read in reachable(graph, node) & set(chosen):
            assert depth[read] < depth[node]


@given(GRAPHS, st.lists(st.integers(0, 9), unique=True, max_size=3))
def test_descendants_are_those_that_reach_the_start(graph: dict[int, list[int]], start: list[int]) -> None:
    expected = {node for node in graph if reachable(graph, node) & set(start)} - set(start)
    assert set(descendants(graph, start)) == expected


def test_a_chain_of_thousands_needs_no_recursion() -> None:
    chain = {node: [node - 1] for node in range(1, 5_000)}
    assert len(list(levels(chain, range(5_000)))) == 5_000
    assert len(descendants(chain, [0])) == 4_999
    assert find_cycle(chain) is None
    assert len(find_cycle({**chain, 0: [4_999]}) or []) == 5_000
