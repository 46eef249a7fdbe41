"""What a check of the installation found: fine, to be watched, or broken, and what to do about it."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `advice` says what a person can do when it is not fine."""

    part: str
    state: State
    sentence: str
    advice: str = ""


def ok(part: str, sentence: str) -> Finding:
    return Finding(part, "ok", sentence)


def warning(part: str, sentence: str, advice: str) -> Finding:
    return Finding(part, "warning", sentence, advice)


def failed(part: str, sentence: str, advice: str) -> Finding:
    return Finding(part, "failed", sentence, advice)


_GB = 1_000_000_000
_LEAST_FREE, _LITTLE_FREE = 1 * _GB, 5 * _GB


def judge_free_disk(free_bytes: int, folder: str) -> Finding:
    """Judge the space that is left: below 1 GB imports may fail at any moment."""
    sentence = f"{free_bytes / _GB:.1f} GB free in {folder}"
    if free_bytes < _LEAST_FREE:
        return failed(
            "disk", sentence, "Make room, or move the home folder (PROMPTLAKE_HOME) to a larger disk."
        )
    if free_bytes < _LITTLE_FREE:
        return warning("disk", sentence, "Make room soon: logs and sheets keep growing.")
    return ok("disk", sentence)


_SLOW_MS = 20.0


def judge_durable_write(milliseconds: float) -> Finding:
    """Judge how long the disk takes to make 64 KB durable: each group of logs waits for it."""
    sentence = f"a durable write takes {milliseconds:.1f} ms"
    if milliseconds > _SLOW_MS:
        return warning("disk", sentence, "Each answer to a logged request waits that long; use a local SSD.")
    return ok("disk", sentence)
