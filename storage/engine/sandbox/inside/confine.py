"""What a worker gives up before it sees anything of a tenant, besides system calls."""

import ctypes
import os
import resource
import signal
import sys

from storage.domain.walls import Wall

_NOBODY = 65534
_CAP_KILL = 1 << 5
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4


def limit_resources(memory_bytes: int, cpu_s: int) -> Wall:
    """Set hard limits on memory, CPU time, files, processes, locks and core dumps."""
    limits = {
        "RLIMIT_AS": memory_bytes,
        "RLIMIT_DATA": memory_bytes,
        "RLIMIT_CPU": cpu_s,
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_NPROC": 0,
        # descriptors that are open stay open; none can be added
        "RLIMIT_NOFILE": 0,
    }
    known = {getattr(resource, name): most for name, most in limits.items() if hasattr(resource, name)}
    for limit, most in known.items():
        resource.setrlimit(limit, (most, most))
    stands = all(resource.getrlimit(limit) == (most, most) for limit, most in known.items())
    return Wall("limits", stands, f"{memory_bytes >> 20} MB of memory, {cpu_s} s of CPU, no new files")


def leave_root() -> Wall:
    """Become nobody, where this runs as root and its owner may still end it then."""
    if os.getuid() != 0:
        return Wall("user", True, f"runs as user {os.getuid()}, not as root", needed=False)
    if not _may_kill():
        # the owner has what this process has: it could not end a process of another user
        return Wall("user", False, "runs as root, because CAP_KILL is missing", needed=False)
    try:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    except OSError as error:
        return Wall("user", False, f"runs as root: {error.strerror}", needed=False)
    return Wall("user", True, "gave up root, runs as nobody", needed=False)


def _may_kill() -> bool:
    try:
        with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123  without pathlib
            effective = next(line for line in status if line.startswith("CapEff:"))
    except (OSError, StopIteration):
        return False
    return bool(int(effective.split()[1], 16) & _CAP_KILL)


def die_with(owner: int) -> Wall:
    """Have the kernel kill this process when its owner ends, however that ends, and hide its memory."""
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) == 0
    done = libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 and done
    if os.getppid() != owner:  # it ended before the call above
        os._exit(0)
    return Wall("owner", done, "ends with its owner; its memory is closed to debuggers")


def forget_surroundings(frame_fds: tuple[int, int]) -> tuple[Wall, Wall]:
    """Close every descriptor but those of the frames, and empty the environment."""
    os.environ.clear()
    sys.stdin = sys.stdout = sys.stderr = sys.__stdin__ = sys.__stdout__ = sys.__stderr__ = None  # type: ignore[misc]
    sys.argv[1:] = []
    low, high = sorted(frame_fds)
    os.closerange(0, low)
    os.closerange(low + 1, high)
    os.closerange(high + 1, os.sysconf("SC_OPEN_MAX"))
    still_open = [fd for fd in range(max(64, high + 2)) if fd not in frame_fds and _is_open(fd)]
    at_root = os.getcwd() == "/"  # noqa: PTH109  not worth the import of pathlib in every worker
    return (
        Wall("environment", at_root and not os.environ, "no variables, working folder /"),
        Wall("frames", not still_open, "no descriptors but the two that carry frames"),
    )


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
