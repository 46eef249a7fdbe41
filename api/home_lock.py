"""Who runs on a home folder: one supervisor at a time, and nothing left over of an earlier one."""

import fcntl
import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any, Self

import psutil

from pipelines.home import run_folder

_STATE = "processes.json"


class HomeInUse(RuntimeError):
    """Another supervisor runs on this home folder."""


class PortInUse(RuntimeError):
    """A port that is to be bound is taken."""


class HomeLock:
    """The right to run on a home folder, held until this process ends."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def acquire(cls, root: Path) -> Self:
        """Take the lock.

        Raises:
            HomeInUse: another supervisor holds it.
        """
        folder = run_folder(root)
        folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(folder / "up.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(fd, 32, 0).decode() or "unknown"
            os.close(fd)
            raise HomeInUse(
                f"promptlake already runs on {root} (process {owner}): stop it first, or name another --home"
            ) from error
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
        return cls(fd)


def is_running(root: Path) -> bool:
    """Tell whether a supervisor holds the home folder."""
    try:
        fd = os.open(run_folder(root) / "up.lock", os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def write_state(root: Path, processes: list[dict[str, Any]]) -> None:
    """Say which processes run, for readiness, doctor and the next start."""
    state = {"supervisor": os.getpid(), "processes": [_with_birth(process) for process in processes]}
    temporary = run_folder(root) / f".{_STATE}.tmp"
    temporary.write_text(json.dumps(state, indent=1))
    temporary.replace(run_folder(root) / _STATE)


def read_state(root: Path) -> list[dict[str, Any]]:
    """Return the processes as last written; empty before the first start."""
    try:
        found: list[dict[str, Any]] = json.loads((run_folder(root) / _STATE).read_text())["processes"]
    except FileNotFoundError:
        return []
    return found


def end_leftovers(root: Path, grace_s: float = 2.0) -> list[str]:
    """Kill processes of an earlier supervisor that outlived it; return their names.

    On Linux the kernel has done it. A process is known by its id and its time of birth, so that a
    stranger who got the same id is left alone.
    """
    left = [process for process in read_state(root) if _alive(process)]
    for process in left:
        os.killpg(process["pid"], signal.SIGKILL)
    until = time.monotonic() + grace_s
    while any(_alive(process) for process in left) and time.monotonic() < until:
        time.sleep(0.05)
    return [process["name"] for process in left]


def bind(host: str, port: int, setting: str) -> socket.socket:
    """Return a listening socket.

    Raises:
        PortInUse: the port is taken or none, or the address is not of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if not 0 < port < 65536:  # noqa: PLR2004
        raise PortInUse(
            f"{port} is no port, which is a number from 1 to 65535. Choose another with {setting}."
        )
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = error.strerror or "cannot be bound"
        raise PortInUse(f"{host}:{port}: {reason}. Choose another port with {setting}.") from error


def bind_unix(path: Path) -> socket.socket:
    """Return a listening socket at a path below a private folder, in place of one that was left there.

    Raises:
        PermissionError: the folder belongs to another user.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.parent.stat().st_uid != os.getuid():
        raise PermissionError(f"{path.parent} belongs to another user")
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(128)
    return listener


def listens(port: int) -> bool:
    """Tell whether somebody accepts connections on a local port."""
    with socket.socket() as probe:
        probe.settimeout(0.2)
        # the system may choose the very port as the near one, too, and connect the probe with itself
        return probe.connect_ex(("127.0.0.1", port)) == 0 and probe.getsockname() != probe.getpeername()


def _with_birth(process: dict[str, Any]) -> dict[str, Any]:
    pid = process["pid"]
    try:
        birth = None if pid is None else psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        birth = None
    return {**process, "created_at": birth}


def _alive(process: dict[str, Any]) -> bool:
    if process["pid"] is None or process["created_at"] is None:
        return False
    try:
        found = psutil.Process(process["pid"])
        same = abs(found.create_time() - process["created_at"]) < 0.01  # noqa: PLR2004  # clock ticks
        return same and found.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
