"""The filter as a program: run here over every number, for both machines."""

import re
import struct
from pathlib import Path

import pytest

from storage.engine.sandbox.inside.seccomp import assemble
from storage.engine.sandbox.inside.syscalls import (
    AARCH64,
    KEPT,
    KEPT_UNLESS_EXECUTABLE,
    LOST,
    X86_64,
    Machine,
)

ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050001, 0x80000000
MACHINES = pytest.mark.parametrize("machine", [X86_64, AARCH64], ids=lambda machine: machine.name)


def verdict(code: bytes, arch: int, number: int, third: int = 0) -> int:
    """What the kernel would do: classic BPF over `struct seccomp_data`."""
    facts = struct.pack("<IIQ6Q", number, arch, 0, 0, 0, third, 0, 0, 0)
    program = [struct.unpack_from("<HBBI", code, at) for at in range(0, len(code), 8)]
    at, register = 0, 0
    while True:
        op, if_true, if_false, k = program[at]
        at += 1
        if op == 0x20:
            register = struct.unpack_from("<I", facts, k)[0]
        elif op == 0x06:
            return k
        else:
            held = {0x15: register == k, 0x35: register >= k, 0x45: bool(register & k)}[op]
            at += if_true if held else if_false


@MACHINES
def test_every_number_is_refused_but_those_kept(machine: Machine) -> None:
    code = assemble(machine)
    kept = set(machine.numbers_of(KEPT).values())
    guarded = set(machine.numbers_of(KEPT_UNLESS_EXECUTABLE).values())
    for number in [*range(600), 2**31 - 1, 2**31, 2**32 - 1, *range(0x40000000, 0x40000400)]:
        for protection in (0, 1, 3, 4, 5, 7, 0x1000007):
            allowed = number in kept or (number in guarded and not protection & 4)
            expected = ALLOW if allowed else REFUSE
            assert verdict(code, machine.audit_arch, number, protection) == expected, (number, protection)


@MACHINES
def test_the_numbers_of_another_processor_end_the_process(machine: Machine) -> None:
    other = {X86_64.audit_arch, AARCH64.audit_arch, 0x40000003, 0} - {machine.audit_arch}
    assert {verdict(assemble(machine), arch, 0) for arch in other} == {KILL}


@MACHINES
def test_nothing_is_both_kept_and_lost(machine: Machine) -> None:
    kept = {**machine.numbers_of(KEPT), **machine.numbers_of(KEPT_UNLESS_EXECUTABLE)}
    lost = {name: number for names in LOST.values() for name, number in machine.numbers_of(names).items()}
    assert not set(kept.values()) & set(lost.values())
    assert len({*kept.values(), *lost.values()}) == len(kept) + len(lost)
    assert len(kept) <= 32


@pytest.mark.parametrize(
    ("machine", "header", "define"),
    [
        (X86_64, "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", r"#define __NR_(\w+)\s+(\d+)"),
        (AARCH64, "/usr/include/asm-generic/unistd.h", r"#define __NR(?:3264)?_(\w+)\s+(\d+)"),
    ],
    ids=lambda value: value.name if isinstance(value, Machine) else "",
)
def test_the_numbers_are_the_kernels(machine: Machine, header: str, define: str) -> None:
    if not Path(header).exists():
        pytest.skip("the kernel's headers are not installed")
    numbers = {name: int(number) for name, number in re.findall(define, Path(header).read_text())}
    # the generic table spells this one by its 32-bit name
    numbers.setdefault("newfstatat", numbers.get("fstatat", -1))
    tables = [KEPT, KEPT_UNLESS_EXECUTABLE, *LOST.values()]
    for name, number in (pair for table in tables for pair in machine.numbers_of(table).items()):
        assert numbers[name] == number, name
