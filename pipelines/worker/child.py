"""A worker process: imports the definitions after the fork, then executes one run after another."""

import contextlib
import ctypes
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from dagster import DagsterInstance, DagsterRunStatus
from dagster._cli.api import _execute_run_command_body
from dagster._core.code_pointer import CodePointer
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._utils.interrupts import capture_interrupts

from pipelines.home import DEFINITIONS
from pipelines.instance.record import keep_connections
from pipelines.worker.lanes import COMPUTE, Job
from pipelines.worker.priority import SteppingBack
from pipelines.worker.wire import Lines, pack

_PR_SET_PDEATHSIG = 1
# an idle process takes about 60 MB
_MOST_KEPT_BYTES = 200 << 20
_WARM = ("polars", "pyarrow.compute", "pyarrow.parquet")


def serve(host: socket.socket, lifeline: int) -> None:
    """Execute the runs that the host names until it closes the connection."""
    die_with_host(lifeline)
    keep_connections()
    with DagsterInstance.get() as instance:
        _preload()
        host.sendall(pack({"event": "ready"}))
        lines = Lines(host)
        while (messages := lines.receive()) is not None:
            for message in messages:
                spent = execute(instance, message["run_id"])
                host.sendall(pack({"event": "done", "run_id": message["run_id"], "retire": spent}))


def execute(instance: DagsterInstance, run_id: str) -> bool:
    """Execute a run as `dagster api execute_run` does; True when this process should take no other.

    That is so after an interruption, and after a run that computed for long, which has stepped back for the
    short ones that a client waits for, or left much memory behind. A run that ended while it waited
    (canceled by force, failed by monitoring) is not begun.
    """
    run = instance.get_run_by_id(run_id)
    if run is None or run.status not in (DagsterRunStatus.STARTING, DagsterRunStatus.NOT_STARTED):
        return False
    stepping = SteppingBack()
    with ExitStack() as stack:
        if Job.from_tags(run_id, run.tags).lane == COMPUTE:
            stack.enter_context(stepping)
        stack.enter_context(capture_interrupts())
        stack.enter_context(_silence())
        _execute_run_command_body(run_id, instance, _ignore, set_exit_code_on_failure=False)
    ended = instance.get_run_by_id(run_id)
    canceled = ended is None or ended.status == DagsterRunStatus.CANCELED
    return stepping.done or canceled or own_memory() > _MOST_KEPT_BYTES


def own_memory() -> int:
    """Return how many bytes this process holds for itself alone; 0 where the system does not tell."""
    try:
        told = Path("/proc/self/smaps_rollup").read_text()
    except OSError:
        return 0
    held = [line.split() for line in told.splitlines() if line.startswith("Private_Dirty:")]
    return sum(int(kb) for _, kb, _ in held) * 1024


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Drop what a run prints: its events say what it does, and prints may hold private text."""
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


def die_with_host(lifeline: int) -> None:
    """End this process when the host ends, however it ends.

    The kernel does it at once on Linux; elsewhere a thread sees the host's end of a pipe close.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_exit_at_end_of, args=(lifeline,), name="lifeline", daemon=True).start()


def _exit_at_end_of(lifeline: int) -> None:
    with contextlib.suppress(OSError):
        os.read(lifeline, 1)
    os._exit(1)


def _preload() -> None:
    # What every import needs would else be loaded by the first one in each process, while a client waits.
    for module in _WARM:
        import_module(module)
    # The same pointer as the code server's: Dagster keeps the loaded definitions by it.
    import_module(DEFINITIONS)
    pointer = CodePointer.from_module(DEFINITIONS, "defs", None)
    ReconstructableRepository(pointer).get_definition()
    # a collection that walked through all of it would hold up a run by 100 ms
    gc.freeze()


def _ignore(_event: Any) -> None:
    pass
