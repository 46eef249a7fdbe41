"""Reads the next piece while the last one is being used: two cores for what is parsed and then compressed."""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
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


def read_next(reads: Iterable[Callable[[], Item]], is_light: Callable[[Item], bool]) -> Generator[Item]:
    """Yield what comes of reads; a thread makes the next one while a light item is being used.

    After one that is not light the next is read when it is asked for, so that two never lie in memory.
    What a read raises is raised in its place.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="read-next") as thread:
        coming: Future[Item] | None = None
        left = iter(reads)
        read = next(left, None)
        while read is not None:
            item = read() if coming is None else coming.result()
            read = next(left, None)
            coming = thread.submit(read) if read is not None and is_light(item) else None
            yield item
            del item
