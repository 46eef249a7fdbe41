"""Work in the background steps back; the process that asked for it does not."""

import os
import sys
import threading

import pytest

from pipelines.background import in_background


def priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@pytest.mark.skipif(sys.platform != "linux", reason="priority is counted by thread on Linux alone")
def test_work_and_its_threads_run_at_a_lower_priority_and_the_caller_keeps_its_own() -> None:
    seen: list[int] = []

    def work() -> int:
        inner = threading.Thread(target=lambda: seen.append(priority()))
        inner.start()
        inner.join()
        return priority()

    before = priority()
    assert in_background(work, 4) == before + 4
    seen.clear()
    assert in_background(work) == before + 10
    assert seen == [before + 10]
    assert priority() == before


def test_a_failure_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        in_background(lambda: 1 // 0)
