"""What a process does behind others: it steps back with all that it started, and is known by its memory."""

import subprocess
import sys

import pytest

CODE = """
import os, subprocess, sys, threading, time
from pipelines.worker.priority import SteppingBack

end = threading.Event()
threading.Thread(target=end.wait, daemon=True).start()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
tasks = lambda pid: [int(one) for one in os.listdir(f"/proc/{pid}/task")]
began = os.getpriority(os.PRIO_PROCESS, 0)
priority = lambda one: os.getpriority(os.PRIO_PROCESS, one) - began
everyone = lambda: [priority(one) for pid in (os.getpid(), child.pid) for one in tasks(pid)]
with SteppingBack(30) as quick:
    pass
print(quick.done, set(everyone()))
with SteppingBack(0.05) as slow:
    until = time.monotonic() + 10
    while min(everyone()) < 10 and time.monotonic() < until:
        time.sleep(0.01)
print(slow.done, set(everyone()))
child.kill()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a priority is the whole process's")
def test_what_lasts_steps_back_with_all_threads_and_processes() -> None:
    told = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout.splitlines() == ["False {0}", "True {10}"]


MEMORY = """
from pipelines.worker.child import own_memory
before = own_memory()
held = bytearray(b"x") * (64 << 20)
print(0 < before < own_memory() - (60 << 20), own_memory() - before < (90 << 20))
del held
print(own_memory() - before < (8 << 20))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system does not tell")
def test_a_process_knows_what_it_holds_for_itself() -> None:
    told = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout.splitlines() == ["True True", "True"]
