"""How a process that computes for long steps back for others: all of its threads, and what it started."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

STEPS_BACK_AFTER_S = 1.0
_BY = 10
_LEAST = 19
_LOOKS = 3


class SteppingBack:
    """A block that steps back once it has lasted for STEPS_BACK_AFTER_S.

    Only a privileged process could step forward again, so `done` tells whether this one has; one that was
    quick has not, and can take other work.
    """

    def __init__(self, after_s: float = STEPS_BACK_AFTER_S) -> None:
        self.done = False
        self._timer = threading.Timer(after_s, self._step_back)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()

    def _step_back(self) -> None:
        self.done = True
        if sys.platform != "linux":
            os.nice(_BY)
            return
        # the kernel knows threads alone: each has a priority of its own, and hands it on to what it starts
        aim = min(_LEAST, os.getpriority(os.PRIO_PROCESS, 0) + _BY)
        for _ in range(_LOOKS):
            # others may have been started meanwhile
            for one in _threads(os.getpid()):
                _lower(one, aim)


def _threads(pid: int) -> Iterator[int]:
    """Yield the threads of a process and of those below it; what has just ended is left out."""
    try:
        found = [int(one.name) for one in Path(f"/proc/{pid}/task").iterdir()]
        started = [Path(f"/proc/{pid}/task/{one}/children").read_text().split() for one in found]
    except OSError:
        return
    yield from found
    for children in started:
        for child in children:
            yield from _threads(int(child))


def _lower(thread: int, aim: int) -> None:
    # it has ended, or is not ours to change
    with suppress(ProcessLookupError, PermissionError):
        if os.getpriority(os.PRIO_PROCESS, thread) < aim:
            os.setpriority(os.PRIO_PROCESS, thread, aim)
