"""Reads the next piece while the last one is being used: two cores for what is parsed and then compressed."""

from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def read_ahead(items: Iterable[Item]) -> Generator[Item]:
    """Yield items that a thread takes one ahead; close it before what the items come from.

    What the items raise is raised in its place.
    """
    iterator = iter(items)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="read-ahead") as thread:
        coming = thread.submit(next, iterator, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, iterator, None)
            yield item
