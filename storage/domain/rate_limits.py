"""Limits of calls in a sliding window: which calls still count, and when the next one may come."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from storage.domain.errors import RateLimited

_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `calls` in any `seconds`."""

    calls: int
    seconds: int

    def since_us(self, now_us: int) -> int:
        """Calls at this moment or before no longer count."""
        return now_us - self.seconds * _SECOND_US

    def check(self, counted_us: Sequence[int], now_us: int) -> None:
        """Refuse a call now, after those that count; each in microseconds since 1970.

        Raises:
            RateLimited: there are too many; it says when the oldest of them ceases to count.
        """
        if len(counted_us) < self.calls:
            return
        free_us = sorted(counted_us)[-self.calls] + self.seconds * _SECOND_US
        raise RateLimited(
            "Rate limit exceeded. Please retry later.",
            retry_after_s=max(1, math.ceil((free_us - now_us) / _SECOND_US)),
            limit=self.calls,
            reset_at_epoch_s=math.ceil(free_us / _SECOND_US),
        )


SUGGESTIONS = RateLimit(calls=10, seconds=60)
