"""Processes that may end while a test looks at them."""

import psutil


def is_alive(process: psutil.Process) -> bool:
    """Say whether a process still runs: one that nobody has reaped yet does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def command_of(process: psutil.Process) -> str:
    """What a process was started as; empty once it has ended."""
    try:
        return " ".join(process.cmdline()) if is_alive(process) else ""
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""
