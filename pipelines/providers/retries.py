"""The one policy of trying again: how often, and after how long."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from pipelines.providers.protocol import RATE_LIMIT, ProviderFailure


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Waits double from `first_s` up to `longest_s`, each shortened by chance to as little as the half.

    Who is told to wait longer than `patience_s` gives up. A rate limit is more patient: it always ends.
    """

    most: int = 5
    most_limited: int = 12
    first_s: float = 0.5
    longest_s: float = 30.0
    patience_s: float = 300.0
    chance: Callable[[], float] = random.random

    def wait_s(self, failure: ProviderFailure, tried: int) -> float | None:
        """Return how long to wait after a failed attempt, the `tried`-th; None: it was the last."""
        most = self.most_limited if failure.error_type == RATE_LIMIT else self.most
        if not failure.again or tried >= most or (failure.after_s or 0.0) > self.patience_s:
            return None
        longest = min(self.longest_s, self.first_s * 2.0 ** (tried - 1))
        jitter = longest * (0.5 + 0.5 * self.chance())
        # all who were told to wait do not come back at one moment
        return jitter if failure.after_s is None else failure.after_s + min(jitter, 1.0)
