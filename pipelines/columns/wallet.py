"""What a run may still spend, shared by all of its columns."""

from collections.abc import Hashable
from threading import Lock


class Wallet:
    """US dollars that are left; None: any amount. A call reserves the most that it can cost.

    Columns are computed side by side: it is safe to share between threads.
    """

    def __init__(self, left: float | None) -> None:
        self._left = left
        self._paid = 0.0
        self._reserved: dict[Hashable, float] = {}
        self._lock = Lock()

    @property
    def is_bounded(self) -> bool:
        return self._left is not None

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left after something was paid: free calls go through whatever the budget."""
        with self._lock:
            return self._left is not None and self._left <= 0 < self._paid

    def reserve(self, key: Hashable, price: float) -> bool:
        """Reserve the price of a call; False when it might not be covered."""
        with self._lock:
            if self._left is None:
                return True
            if sum(self._reserved.values()) + price > self._left:
                return False
            self._reserved[key] = price
            return True

    def exceeds(self, price: float) -> bool:
        """Whether a price is beyond all that is left, while nobody reserves any of it."""
        with self._lock:
            return self._left is not None and not self._reserved and price > self._left

    def settle(self, key: Hashable, price: float) -> None:
        """Pay what a call did cost."""
        with self._lock:
            self._reserved.pop(key, None)
            self._pay(price)

    def pay(self, price: float) -> None:
        """Count what was paid already."""
        with self._lock:
            self._pay(price)

    def _pay(self, price: float) -> None:
        self._paid += price
        if self._left is not None:
            self._left -= price
