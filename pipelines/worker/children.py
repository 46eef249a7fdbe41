"""One worker process seen from the host: forked idle, given one run at a time, buried with a cause."""

import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field

from pipelines.worker import child
from pipelines.worker.wire import Lines, pack


@dataclass(eq=False, slots=True)
class Child:
    """A worker process: starting until `ready`, then idle or busy with `run_id`, at last retiring."""

    pid: int
    lines: Lines
    ready: bool = False
    run_id: str | None = None
    runs_done: int = 0
    retiring: bool = False
    idle_since: float = field(default_factory=time.monotonic)
    kill_at: float | None = None

    @property
    def connection(self) -> socket.socket:
        return self.lines.connection

    @property
    def idle(self) -> bool:
        return self.ready and self.run_id is None and not self.retiring

    def start(self, run_id: str) -> None:
        """Give the child a run."""
        self.run_id = run_id
        try:
            self.connection.sendall(pack({"run_id": run_id}))
        except OSError:
            # It died just now: it is buried, and its run settled, when the end of its connection is read.
            return

    def interrupt(self, grace_s: float) -> None:
        """Ask the run to stop; `kill_if_due` ends it where it has not after `grace_s`."""
        if self.kill_at is None:
            self.kill_at = time.monotonic() + grace_s
            os.kill(self.pid, signal.SIGINT)

    def kill_if_due(self, now: float) -> None:
        """Kill a process that was asked to stop and did not."""
        if self.kill_at is not None and now >= self.kill_at:
            os.kill(self.pid, signal.SIGKILL)

    def retire(self) -> None:
        """Let the child go: it leaves when it has nothing more to read."""
        if not self.retiring:
            self.retiring = True
            self.connection.shutdown(socket.SHUT_WR)

    def bury(self) -> str:
        """Reap the process and return the cause of its death in words."""
        self.connection.close()
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code >= 0:
            return f"The run's process ended unexpectedly (exit status {code})."
        hint = "; was the system out of memory?" if -code == signal.SIGKILL and self.kill_at is None else ""
        return f"The run's process was ended by {signal.Signals(-code).name}{hint}."


class Nursery:
    """Forks children that share what the host has loaded and inherit none of its connections."""

    def __init__(self) -> None:
        self._lifeline, self._held = os.pipe()

    def fork(self, inherited: Iterable[socket.socket]) -> Child:
        """Fork a child; `inherited` are the host's sockets, which it must not keep open."""
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            os.close(self._held)
            for connection in [ours, *inherited]:
                connection.close()
            _live(theirs, self._lifeline)
        theirs.close()
        ours.setblocking(False)
        return Child(pid, Lines(ours))


def _live(host: socket.socket, lifeline: int) -> None:
    """Be the child, and never return into the host's code."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        # Dagster listens to interrupts while a run executes; an idle child has nothing to interrupt.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child.serve(host, lifeline)
        code = 0
    except BaseException:  # noqa: BLE001  # the last frame of this process: tell, then end
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
