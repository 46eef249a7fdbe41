"""The worker's own attack on its walls, once they stand: each wall falls when one attempt is not refused.

The arguments are such that a call that is let through does no harm: it fails for another reason than a
refusal, or makes something that ends with this process, which then evaluates nothing.
"""

import ctypes
import errno
import os

from storage.domain.walls import Wall
from storage.engine.sandbox.inside.syscalls import LOST, Machine, find_machine

_READ, _WRITE, _EXEC = 1, 2, 4
_PRIVATE_ANONYMOUS = 0x22
_PAGE = 4096
_NO_ADDRESS = ctypes.c_void_p(-1).value


def prove() -> tuple[Wall, ...]:
    """Try what must be refused; return the walls that this proves or disproves."""
    machine = find_machine()
    if machine is None:
        return (Wall("system calls", False, "this system's calls are not known here"),)
    libc = ctypes.CDLL(None, use_errno=True)
    walls = [_lost_calls(libc, machine, wall) for wall in LOST]
    return (*walls, _no_child(), _no_file(), _no_executable_page(libc))


def _lost_calls(libc: ctypes.CDLL, machine: Machine, wall: str) -> Wall:
    calls = machine.numbers_of(LOST[wall])
    let_through = [name for name, number in calls.items() if not _refused(libc, number)]
    if let_through:
        return Wall(wall, False, f"not refused: {', '.join(let_through)}")
    return Wall(wall, True, f"{len(calls)} system calls tried, all refused")


def _refused(libc: ctypes.CDLL, number: int) -> bool:
    nothing = ctypes.c_long(-1)
    ctypes.set_errno(0)
    # six times -1: no pointer, descriptor, process or flag set that any of the calls accepts
    done = libc.syscall(ctypes.c_long(number), *[nothing] * 6)
    return done == -1 and ctypes.get_errno() == errno.EPERM


def _no_child() -> Wall:
    try:
        if os.fork() == 0:
            os._exit(0)
    except PermissionError:
        return Wall("children", True, "fork is refused")
    except OSError as error:  # another wall held, this one did not
        return Wall("children", False, f"fork is not refused: {error.strerror}")
    return Wall("children", False, "fork is not refused")


def _no_file() -> Wall:
    for path in ("/", "/etc/passwd", "/proc/self/environ", "/dev/null"):
        try:
            os.close(os.open(path, os.O_RDONLY))
        except PermissionError:
            continue
        except OSError as error:  # another wall held, this one did not
            return Wall("reading", False, f"opening {path} is not refused: {error.strerror}")
        return Wall("reading", False, f"opening {path} is not refused")
    return Wall("reading", True, "no path can be opened")


def _no_executable_page(libc: ctypes.CDLL) -> Wall:
    """Neither a fresh page nor a page of data may become code."""
    mmap, mprotect = libc.mmap, libc.mprotect
    mmap.restype = ctypes.c_void_p
    mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    fresh = mmap(None, _PAGE, _READ | _EXEC, _PRIVATE_ANONYMOUS, -1, 0)
    page = mmap(None, _PAGE, _READ | _WRITE, _PRIVATE_ANONYMOUS, -1, 0)
    if page == _NO_ADDRESS:
        return Wall("code", False, "no page of memory could be had for the trial")
    turned = mprotect(page, _PAGE, _READ | _EXEC)
    if fresh == _NO_ADDRESS and turned == -1:
        return Wall("code", True, "no memory can be made executable")
    return Wall("code", False, "memory can be made executable")
