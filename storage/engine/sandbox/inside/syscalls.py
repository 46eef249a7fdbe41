"""Numbers of Linux system calls: those a worker keeps, and those it proves that it has lost."""

import platform
from dataclasses import dataclass

# name: (x86_64, aarch64); aarch64 never had the oldest ones
_Numbers = dict[str, tuple[int | None, int | None]]

# What an interpreter needs to compute, allocate, tell the time, answer and end.
KEPT: _Numbers = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "brk": (12, 214),
    "madvise": (28, 233),
    "futex": (202, 98),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "getrusage": (98, 165),
    "getrandom": (318, 278),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "sched_yield": (24, 124),
    "restart_syscall": (219, 128),
    "rt_sigreturn": (15, 139),
    "rt_sigprocmask": (14, 135),
    "sigaltstack": (131, 132),
    "exit": (60, 93),
    "exit_group": (231, 94),
}

# Kept only where their third argument, the protection, has no PROT_EXEC.
KEPT_UNLESS_EXECUTABLE: _Numbers = {"mmap": (9, 222), "mprotect": (10, 226)}

# Lost, by the wall that each proves. The list is for proof: whatever is not kept is lost.
LOST: dict[str, _Numbers] = {
    "files": {
        "open": (2, None),
        "openat": (257, 56),
        "openat2": (437, 437),
        "stat": (4, None),
        "newfstatat": (262, 79),
        "statx": (332, 291),
        "access": (21, None),
        "readlinkat": (267, 78),
        "getdents64": (217, 61),
        "mkdirat": (258, 34),
        "unlinkat": (263, 35),
        "renameat2": (316, 276),
        "chdir": (80, 49),
        "getcwd": (79, 17),
        "chroot": (161, 51),
        "mount": (165, 40),
        "pivot_root": (155, 41),
        "name_to_handle_at": (303, 264),
        "open_by_handle_at": (304, 265),
        "inotify_init1": (294, 26),
        "fanotify_init": (300, 262),
    },
    "network": {
        "socket": (41, 198),
        "socketpair": (53, 199),
        "connect": (42, 203),
        "sendto": (44, 206),
    },
    "descriptors": {
        "dup": (32, 23),
        "pipe2": (293, 59),
        "fcntl": (72, 25),
        "ioctl": (16, 29),
        "sendfile": (40, 71),
        "splice": (275, 76),
        "memfd_create": (319, 279),
        "pidfd_getfd": (438, 438),
        "mq_open": (240, 180),
        "shmget": (29, 194),
        "shmat": (30, 196),
    },
    "processes": {
        "clone": (56, 220),
        "clone3": (435, 435),
        "execve": (59, 221),
        "execveat": (322, 281),
        "kill": (62, 129),
        "tgkill": (234, 131),
        "rt_sigqueueinfo": (129, 138),
        "rt_sigaction": (13, 134),
        "ptrace": (101, 117),
        "process_vm_readv": (310, 270),
        "process_vm_writev": (311, 271),
        "pidfd_open": (434, 434),
    },
    "kernel": {
        "prctl": (157, 167),
        "prlimit64": (302, 261),
        "setrlimit": (160, 164),
        "setuid": (105, 146),
        "setns": (308, 268),
        "unshare": (272, 97),
        "seccomp": (317, 277),
        "bpf": (321, 280),
        "perf_event_open": (298, 241),
        "io_uring_setup": (425, 425),
        "userfaultfd": (323, 282),
        "keyctl": (250, 219),
        "personality": (135, 92),
        "init_module": (175, 105),
        "kexec_load": (246, 104),
        "pkey_mprotect": (329, 288),
    },
}


@dataclass(frozen=True, slots=True)
class Machine:
    """A kind of processor: its name to the kernel's audit, its column in the tables above."""

    name: str
    audit_arch: int
    column: int

    def number(self, numbers: tuple[int | None, int | None]) -> int | None:
        return numbers[self.column]

    def numbers_of(self, names: _Numbers) -> dict[str, int]:
        """The calls of a table that this machine has, by name."""
        found = {name: self.number(numbers) for name, numbers in names.items()}
        return {name: number for name, number in found.items() if number is not None}


X86_64 = Machine("x86_64", 0xC000003E, 0)
AARCH64 = Machine("aarch64", 0xC00000B7, 1)


def find_machine() -> Machine | None:
    """The machine this runs on; None when its system calls are not known here."""
    if platform.system() != "Linux":
        return None
    names = {"x86_64": X86_64, "amd64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}
    return names.get(platform.machine().lower())
