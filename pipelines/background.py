"""Work that steps back: it runs in a thread of lower priority, and so do the threads that it starts."""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")

STEPS_BACK = 10


def in_background(work: Callable[[], Result], steps: int = STEPS_BACK) -> Result:
    """Run `work` so many steps behind everything that a caller waits for; return or raise what it does.

    Linux counts priority by thread, so the process itself keeps its own. Elsewhere nothing is changed.
    """
    with ThreadPoolExecutor(1, "background", _step_back, (steps,)) as pool:
        return pool.submit(work).result()


def _step_back(steps: int) -> None:
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + steps)
