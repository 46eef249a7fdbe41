"""What is read ahead comes in order, and a failure comes in its place."""

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from storage.engine.read_ahead import read_ahead


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
