"""Cursors: every walk sees each item once, in order, both ways; what was not given out is refused."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import InvalidCursor
from storage.domain.paging import Order, Page, PageRequest, page_of, plan_page

KEY = bytes(range(32))


def read(places: Sequence[int], request: PageRequest) -> Page[int]:
    """Answer a request over distinct integers, as a database would."""
    window = plan_page(KEY, request, sort="place", filters={"list": "a"})
    found = sorted(places, reverse=window.descending)
    if window.position is not None:
        position = window.position
        found = [one for one in found if (one < position if window.descending else one > position)]
    return page_of(KEY, window, found[: window.limit], lambda one: one)


@given(st.sets(st.integers(), max_size=30), st.integers(1, 7), st.sampled_from(["asc", "desc"]))
def test_a_walk_there_and_back_sees_each_item_once_in_order(
    places: set[int], limit: int, order: Order
) -> None:
    wanted = sorted(places, reverse=order == "desc")
    pages = [read(list(places), PageRequest(limit, order))]
    while pages[-1].next_cursor:
        pages.append(read(list(places), PageRequest(limit, order, pages[-1].next_cursor)))
    assert [one for page in pages for one in page.items] == wanted
    assert all(len(page.items) == limit for page in pages[:-1])
    assert pages[0].prev_cursor is None
    for before, after in pairwise(pages):
        assert after.prev_cursor is not None
        back = read(list(places), PageRequest(limit, order, after.prev_cursor))
        assert list(back.items) == list(before.items)
        assert back.next_cursor is not None
        assert (back.prev_cursor is None) == (before is pages[0])


@given(
    st.sets(st.integers(0, 60), min_size=8, max_size=30),
    st.sets(st.integers(0, 60), max_size=10),
    st.sets(st.integers(0, 60), max_size=10),
)
def test_what_is_added_or_deleted_meanwhile_moves_nothing_else(
    places: set[int], added: set[int], deleted: set[int]
) -> None:
    first = read(list(places), PageRequest(4))
    assert first.next_cursor is not None
    now = (places | added) - deleted
    second = read(list(now), PageRequest(60, "asc", first.next_cursor))
    assert list(second.items) == sorted(one for one in now if one > first.items[-1])


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_what_was_not_given_out_is_refused(made_up: bytes | str) -> None:
    text = made_up.hex() if isinstance(made_up, bytes) else made_up
    with pytest.raises(InvalidCursor):
        plan_page(KEY, PageRequest(5, "asc", text), sort="place", filters={})


def test_a_cursor_binds_sort_order_filters_and_key() -> None:
    cursor = read(range(9), PageRequest(3)).next_cursor
    assert cursor is not None
    for sort, order, filters, key in [
        ("other", "asc", {"list": "a"}, KEY),
        ("place", "desc", {"list": "a"}, KEY),
        ("place", "asc", {"list": "b"}, KEY),
        ("place", "asc", {}, KEY),
        ("place", "asc", {"list": "a"}, bytes(32)),
    ]:
        with pytest.raises(InvalidCursor):
            plan_page(key, PageRequest(3, order, cursor), sort=sort, filters=filters)  # type: ignore[arg-type]
    assert plan_page(KEY, PageRequest(9, "asc", cursor), sort="place", filters={"list": "a"}).position == 2
    for at in range(0, len(cursor), 7):
        bent = cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :]
        with pytest.raises(InvalidCursor):
            plan_page(KEY, PageRequest(3, "asc", bent), sort="place", filters={"list": "a"})
