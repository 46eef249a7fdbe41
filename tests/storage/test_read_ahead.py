"""What is read ahead comes in order, and a failure comes in its place."""

import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial

import pytest

from storage.engine.read_ahead import read_ahead, read_next


def test_all_items_come_in_order_and_the_next_is_taken_meanwhile() -> None:
    taken = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        taken.set()
        yield 2
        yield 3

    with closing(read_ahead(items())) as ahead:
        assert next(ahead) == 1
        # nobody asked for the second one yet
        assert taken.wait(5)
        assert list(ahead) == [2, 3]


def test_a_failure_comes_after_what_came_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    seen = []
    with closing(read_ahead(items())) as ahead, pytest.raises(ValueError, match="broken"):
        seen += ahead
    with closing(read_ahead(items())) as ahead:
        assert next(ahead) == 1


def test_whoever_stops_early_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    with closing(read_ahead(iter(range(10)))) as ahead:
        assert next(ahead) == 0
    assert threading.active_count() == before


def test_the_next_item_is_read_while_a_light_one_is_used() -> None:
    begun = [threading.Event() for _ in range(3)]

    def read(at: int) -> int:
        begun[at].set()
        return at

    reads = [partial(read, at) for at in range(3)]
    for at in read_next(reads, lambda _: True):
        assert all(event.wait(5) for event in begun[: at + 2])
    for event in begun:
        event.clear()
    for at in read_next(reads, lambda _: False):
        assert [event.is_set() for event in begun] == [n <= at for n in range(3)]
    assert list(read_next([], lambda _: True)) == []


def test_what_a_read_raises_comes_in_its_place() -> None:
    def fails() -> int:
        raise ValueError("broken")

    items = read_next([lambda: 1, fails], lambda _: True)
    assert next(items) == 1
    with pytest.raises(ValueError, match="broken"):
        next(items)
