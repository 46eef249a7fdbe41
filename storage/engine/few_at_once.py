"""What takes much memory, one after the other: few at once, some wait, and more are refused."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

from storage.domain.errors import Unavailable


class FewAtOnce:
    """At most `at_once` threads at work, `most_waiting` that wait, for at most `wait_s` seconds.

    `name` says of what in the refusals. Safe to share between threads.
    """

    def __init__(self, name: str, *, at_once: int, most_waiting: int, wait_s: float) -> None:
        self._name = name
        self.wait_s = wait_s
        self._turns = BoundedSemaphore(at_once)
        # those who wait hold threads that other calls need
        self._waiting = BoundedSemaphore(at_once + most_waiting)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn and keep it for a block.

        Raises:
            Unavailable: too many wait, or those at work take too long.
        """
        if not self._waiting.acquire(blocking=False):
            raise Unavailable(f"Too many {self._name} wait")
        try:
            if not self._turns.acquire(timeout=self.wait_s):
                raise Unavailable(f"Too many {self._name} are at work")
            try:
                yield
            finally:
                self._turns.release()
        finally:
            self._waiting.release()
