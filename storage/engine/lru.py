"""A bounded memory of values that never change, shared by threads."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lru(Generic[K, V]):
    """Keeps what was used last, as far as the weights of all that is kept sum to at most `capacity`."""

    def __init__(self, capacity: int, weigh: Callable[[V], int] = lambda _: 1) -> None:
        self._capacity = capacity
        self._weigh = weigh
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._weight = 0
        self._lock = Lock()

    def find(self, key: K) -> V | None:
        """Return the value of a key if it is kept."""
        with self._lock:
            return self._kept.get(key)

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key, made when it is not kept; two threads may both make it."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        value = make()
        with self._lock:
            if key not in self._kept:
                self._keep(key, value)
        return value

    def put(self, key: K, value: V) -> None:
        """Keep a value in the place of the one that the key had."""
        with self._lock:
            if key in self._kept:
                self._weight -= self._weigh(self._kept.pop(key))
            self._keep(key, value)

    def _keep(self, key: K, value: V) -> None:
        self._kept[key] = value
        self._weight += self._weigh(value)
        while self._weight > self._capacity and len(self._kept) > 1:
            self._weight -= self._weigh(self._kept.popitem(last=False)[1])
