"""The supervisor: starts the API first, then Dagster's processes; restarts what dies; leaves nothing behind.

Started by `promptlake up` as `python -m api.supervisor`, so that the process that stays is a small one.
"""

import argparse
import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from api.home_lock import bind, bind_unix, listens, write_state
from api.processes import Process, Program
from pipelines.home import code_port, commands, hold_databases, process_env
from storage.settings import Settings

_log = logging.getLogger("promptlake.supervisor")

STOP_WITHIN_S = 8.0
_GATES_EVERY_S = 0.1
_REST_S = 30.0
_MAX_LOG_BYTES = 16_777_216
_INSTANCE = "dagster-instance"
# Where large blocks were freed, glibc comes to keep such blocks, for each thread its own: reading logs of
# megabytes left 570 MB behind. With fixed bounds they go back to the system at once; Arrow's own pool keeps
# 150 MB of pages of rows.
_LARGE_BLOCKS = {
    "MALLOC_MMAP_THRESHOLD_": "1048576",
    "MALLOC_TRIM_THRESHOLD_": "8388608",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}


class Supervisor:
    """The processes of one home folder; `run` returns when SIGTERM or SIGINT came and all have ended."""

    def __init__(
        self, settings: Settings, listener: socket.socket, logs: socket.socket, env: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._databases = ExitStack()
        self._stopping = False
        folder = settings.root / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        self.processes = [
            Process(program, folder / f"{program.name}.log")
            for program in self._programs(listener, logs, env)
        ]

    def _programs(
        self, listener: socket.socket, logs: socket.socket, env: Mapping[str, str]
    ) -> list[Program]:
        settings, python = self._settings, [sys.executable, "-m"]
        # one process writes the tail of the logs; the others, runs among them, hand theirs over
        dagster_env = process_env(settings, env) | {"PROMPTLAKE_LOG_WRITER": "remote"}
        found = [
            Program(
                "api" if settings.workers == 1 else f"api-{index}",
                [*python, "api.server", "--fd", str(listener.fileno())],
                _LARGE_BLOCKS | dagster_env,
                fds=(listener.fileno(),),
            )
            for index in range(settings.workers)
        ]
        log_writer = [*python, "storage.log_writing", "--fd", str(logs.fileno())]
        found.insert(0, Program("log-writer", log_writer, dagster_env, fds=(logs.fileno(),)))
        found.append(Program(_INSTANCE, [*python, "pipelines.instance.make"], dagster_env, once=True))
        # not before Dagster's storage is made: the first seconds belong to the API
        deliveries = [*python, "pipelines.deliveries"]
        found.append(Program("webhooks", deliveries, dagster_env, gate=self._instance_is_made))
        gates: dict[str, Callable[[], bool]] = dict.fromkeys(
            ("dagster-ui", "dagster-daemon"), self._code_is_served
        )
        for name, command in commands(settings).items():
            found.append(Program(name, command, dagster_env, gate=gates.get(name, self._instance_is_made)))
        return found

    def _instance_is_made(self) -> bool:
        return next(process.done for process in self.processes if process.program.name == _INSTANCE)

    def _code_is_served(self) -> bool:
        return self._instance_is_made() and listens(code_port(self._settings))

    def run(self) -> None:
        """Supervise until told to stop."""
        wake = self._listen_to_signals()
        try:
            while not self._stopping:
                self._turn(time.monotonic())
                select.select([wake], [], [], self._pause_s(time.monotonic()))
                self._hear(wake)
        finally:
            self._stop()

    def _turn(self, now: float) -> None:
        reaped = [process.reap(now) for process in self.processes]
        started = [process.start_if_due(now) for process in self.processes]
        if any(reaped) and self._instance_is_made():
            self._databases.pop_all().close()
            self._databases.enter_context(hold_databases(self._settings.dagster_home))
        if any(reaped) or any(started):
            write_state(self._settings.root, [process.describe() for process in self.processes])
        for process in self.processes:
            _shorten(process)

    def _pause_s(self, now: float) -> float:
        missing = [process for process in self.processes if not process.running and not process.done]
        waits = [process.next_start_at - now for process in missing]
        return min([_REST_S, *(max(_GATES_EVERY_S, wait) for wait in waits)])

    def _listen_to_signals(self) -> socket.socket:
        wake, signalled = socket.socketpair()
        wake.setblocking(False)
        signalled.setblocking(False)
        self._signalled = signalled
        signal.set_wakeup_fd(signalled.fileno())
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        return wake

    def _hear(self, wake: socket.socket) -> None:
        try:
            numbers = set(wake.recv(4096))
        except BlockingIOError:
            return
        self._stopping = bool(numbers & {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})

    def _stop(self) -> None:
        deadline = time.monotonic() + STOP_WITHIN_S
        for process in self.processes:
            process.ask_to_end()
        for process in self.processes:
            process.end(deadline)
        self._databases.close()
        write_state(self._settings.root, [process.describe() for process in self.processes])


def _shorten(process: Process) -> None:
    """Keep one older log beside the current one; writers append, so the file may be emptied below them."""
    try:
        if process.log.stat().st_size > _MAX_LOG_BYTES:
            process.log.with_suffix(".log.1").write_bytes(process.log.read_bytes())
            os.truncate(process.log, 0)
    except FileNotFoundError:
        return


def check_ports(settings: Settings) -> None:
    """Fail early where a process could not bind its port.

    Raises:
        PortInUse: it is taken, also by another of these, or is none.
    """
    code_setting = "--dagster-port (the code server takes the port after it)"
    with ExitStack() as bound:
        for host, port, setting in (
            (settings.host, settings.port, "--port"),
            (settings.dagster_host, settings.dagster_port, "--dagster-port"),
            ("127.0.0.1", code_port(settings), code_setting),
        ):
            bound.enter_context(bind(host, port, setting))


def main() -> None:
    """Supervise the home folder of the environment; `promptlake up` has taken its lock and the API's port."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="number of the inherited listening socket")
    fd = parser.parse_args().fd
    settings = Settings.from_env(os.environ)
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with socket.socket(fileno=fd) as listener, bind_unix(settings.log_socket) as logs:
        Supervisor(settings, listener, logs, os.environ).run()


if __name__ == "__main__":
    main()
