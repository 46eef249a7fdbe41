"""What benchmarks share: percentiles, the disk, memory and CPU of a tree of processes, the result line."""

import os
import platform
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

MB = 1_000_000


class MissingTool(RuntimeError):
    """A program that the benchmark drives is not installed."""


def tool(name: str, package: str) -> str:
    """Return the path of a program.

    Raises:
        MissingTool: it is not installed.
    """
    path = shutil.which(name)
    if path is None:
        raise MissingTool(
            f"`{name}` is missing: install the package `{package}` (Debian: apt-get install {package})"
        )
    return path


@dataclass(slots=True)
class Bench:
    """One benchmark under way: a folder of its own, and where its lines go."""

    name: str
    folder: Path
    quick: bool
    show: Callable[[dict[str, Any]], None]
    missed: bool = field(default=False)

    def report(self, what: str, *, met: bool | None = None, **figures: Any) -> None:
        """Print one line; `met` says whether its target was kept."""
        line: dict[str, Any] = {"bench": self.name, "what": what, **figures}
        if met is not None:
            line["met"] = met
            self.missed = self.missed or not met
        self.show(line | ({"quick": True} if self.quick else {}))

    def sized(self, full: int, quick: int) -> int:
        return quick if self.quick else full


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def summary(milliseconds: Sequence[float]) -> dict[str, float]:
    """Spell a series as n, p50, p95, p99 and its ends, in ms."""
    ordered = sorted(milliseconds)
    cuts = statistics.quantiles(ordered, n=100, method="inclusive") if len(ordered) > 1 else ordered * 99
    return {
        "n": len(ordered),
        "p50_ms": round(cuts[49], 2),
        "p95_ms": round(cuts[94], 2),
        "p99_ms": round(cuts[98], 2),
        "min_ms": round(ordered[0], 2),
        "max_ms": round(ordered[-1], 2),
    }


def fdatasync_ms(folder: Path, *, n: int = 200, size: int = 65_536) -> dict[str, float]:
    """Time a durable append as a group of logs makes it: write `size` bytes, fdatasync."""
    block = os.urandom(size)
    path = folder / "fdatasync.bin"
    times = []
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        for _ in range(n):
            os.write(handle, block)
            started = time.perf_counter()
            os.fdatasync(handle)
            times.append((time.perf_counter() - started) * 1000)
    finally:
        os.close(handle)
        path.unlink()
    return summary(times)


def tree(pid: int) -> list[psutil.Process]:
    """A process and all below it."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def role(process: psutil.Process) -> str:
    """Name a process of the service by what it was started as."""
    with suppress(psutil.Error):
        line = " ".join(process.cmdline())
        for word, name in _ROLES.items():
            if word in line:
                return name
    return "other"


_ROLES = {
    "tests.bench.bare": "bare",
    "api.supervisor": "supervisor",
    "api.server": "api",
    "storage.log_writing": "log writer",
    "api.serve": "api",
    "dagster._daemon": "daemon",
    "dagster_webserver": "webserver",
    "dagster api grpc": "code server",
    "pipelines.worker": "worker",
    "pipelines.deliveries": "webhooks",
    "multiprocessing": "helper",
}


def pss_bytes(pid: int) -> int:
    """Memory of a process, shared pages counted by share; RSS where the kernel does not tell."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        with suppress(psutil.Error):
            return int(psutil.Process(pid).memory_info().rss)
    return 0


def cpu_seconds(pid: int) -> dict[str, float]:
    """CPU time used so far by a process and all below it, by role."""
    used: dict[str, float] = {}
    for process in tree(pid):
        with suppress(psutil.Error):
            times = process.cpu_times()
            name = role(process)
            used[name] = used.get(name, 0.0) + times.user + times.system
    return used


@dataclass(slots=True)
class Peak:
    """Highest resident memory seen, by process id, with its role."""

    bytes_of: dict[int, int] = field(default_factory=dict)
    role_of: dict[int, str] = field(default_factory=dict)

    def of(self, wanted: str) -> int:
        """The highest of one process of a role."""
        return max((size for pid, size in self.bytes_of.items() if self.role_of[pid] == wanted), default=0)


@contextmanager
def watching(pid: int, *, every_s: float = 0.02) -> Iterator[Peak]:
    """Watch the resident memory of a tree of processes during a block."""
    peak = Peak()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(every_s):
            with suppress(psutil.Error):
                for process in tree(pid):
                    _see(peak, process)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def _see(peak: Peak, process: psutil.Process) -> None:
    with suppress(psutil.Error):
        if process.pid not in peak.role_of:
            peak.role_of[process.pid] = role(process)
        resident = process.memory_info().rss
        peak.bytes_of[process.pid] = max(peak.bytes_of.get(process.pid, 0), resident)


def python() -> str:
    return sys.executable
