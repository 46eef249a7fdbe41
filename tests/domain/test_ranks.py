"""Ranks keep the order of columns, whatever joins where."""

from hypothesis import given
from hypothesis import strategies as st

from storage.domain.ranks import place


@given(st.lists(st.one_of(st.none(), st.integers(0, 40)), max_size=60))
def test_columns_stand_where_they_were_put(positions: list[int | None]) -> None:
    ranks: list[int] = []
    order: list[int] = []
    held: dict[int, int] = {}
    for column, position in enumerate(positions):
        placed = place(ranks, position)
        if placed.renumbered is not None:
            held = dict(zip(order, placed.renumbered, strict=True))
        held[column] = placed.rank
        order.insert(len(order) if position is None else position, column)
        ranks = sorted(held.values())
        assert len(set(ranks)) == len(ranks)
        assert ranks[0] > 0
        assert sorted(held, key=held.__getitem__) == order


def test_a_closed_gap_renumbers_all() -> None:
    assert place([1, 2], 1).renumbered is not None
    assert place([1024, 2048], 1).renumbered is None
