"""The filter of system calls: a BPF program assembled by hand, and handed to the kernel.

The kernel runs the program at every system call of the worker, over `struct seccomp_data`
{int nr; u32 arch; u64 instruction_pointer; u64 args[6]}, little-endian, and does what it returns.
No library is needed for it, so the wall stands wherever pip alone has installed the service.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable

from storage.engine.sandbox.inside.syscalls import (
    KEPT,
    KEPT_UNLESS_EXECUTABLE,
    LOST,
    X86_64,
    Machine,
    find_machine,
)

# Opcodes of classic BPF: load a word; jump if equal, if at least, if any bit is set; return.
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06

_ALLOW = 0x7FFF0000
_KILL_PROCESS = 0x80000000
_REFUSE = 0x00050000 | errno.EPERM  # the call fails with EPERM and nothing has happened

_NUMBER_AT, _ARCH_AT, _THIRD_ARGUMENT_AT = 0, 4, 16 + 2 * 8
_PROT_EXEC = 0x4
_X32_BIT = 0x40000000  # x86_64 kernels may offer a second table of calls above this number

_SET_MODE_FILTER, _FILTER_ALL_THREADS = 1, 1
_PR_SET_NO_NEW_PRIVS = 38


class SeccompRefused(OSError):
    """The kernel does not take the filter."""


def _instruction(code: int, k: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One `struct sock_filter`; the jumps count the instructions that are skipped."""
    return struct.pack("<HBBI", code, if_true, if_false, k)


def assemble(machine: Machine) -> bytes:
    """Return the program that allows what a worker keeps and refuses everything else."""
    program = [
        # another processor's calling convention has other numbers: nothing can be said about it
        _instruction(_LOAD, _ARCH_AT),
        _instruction(_IF_EQUAL, machine.audit_arch, if_true=1),
        _instruction(_RETURN, _KILL_PROCESS),
        _instruction(_LOAD, _NUMBER_AT),
    ]
    if machine is X86_64:
        program += [_instruction(_IF_AT_LEAST, _X32_BIT, if_false=1), _instruction(_RETURN, _REFUSE)]
    program += _allowed(machine.numbers_of(KEPT).values())
    for number in machine.numbers_of(KEPT_UNLESS_EXECUTABLE).values():
        program += [
            _instruction(_IF_EQUAL, number, if_false=4),
            _instruction(_LOAD, _THIRD_ARGUMENT_AT),
            _instruction(_IF_BITS, _PROT_EXEC, if_false=1),
            _instruction(_RETURN, _REFUSE),
            _instruction(_RETURN, _ALLOW),
        ]
    program.append(_instruction(_RETURN, _REFUSE))
    return b"".join(program)


def _allowed(numbers: Iterable[int]) -> list[bytes]:
    lines: list[bytes] = []
    for number in sorted(numbers):
        lines += [_instruction(_IF_EQUAL, number, if_false=1), _instruction(_RETURN, _ALLOW)]
    return lines


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install() -> str:
    """Put the filter on every thread of this process, for ever; return a sentence about it.

    Raises:
        SeccompRefused: the system has no such filter, or does not take it.
    """
    machine = find_machine()
    if machine is None:
        raise SeccompRefused(
            "this system has no seccomp filter that is known here (Linux on x86_64, aarch64)"
        )
    code = assemble(machine)
    kept = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)
    # without it the kernel takes a filter from privileged processes only; it also disarms set-user-id files
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise SeccompRefused(f"PR_SET_NO_NEW_PRIVS: {os.strerror(ctypes.get_errno())}")
    number = ctypes.c_long(_seccomp_number(machine))
    done = libc.syscall(
        number,
        ctypes.c_long(_SET_MODE_FILTER),
        ctypes.c_long(_FILTER_ALL_THREADS),
        ctypes.byref(program),
    )
    if done != 0:
        raise SeccompRefused(f"seccomp: {os.strerror(ctypes.get_errno())}")
    allowed = len(machine.numbers_of(KEPT)) + len(machine.numbers_of(KEPT_UNLESS_EXECUTABLE))
    return f"{allowed} system calls are kept, all others are refused ({machine.name})"


def _seccomp_number(machine: Machine) -> int:
    number = machine.number(LOST["kernel"]["seccomp"])
    if number is None:
        raise SeccompRefused(f"seccomp is not known on {machine.name}")
    return number
