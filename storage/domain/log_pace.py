"""When the upkeep of the logs steps back: while many pour in, what callers wait for comes first."""

from collections.abc import Iterable
from dataclasses import dataclass

WINDOW_US = 30_000_000
POURING_ROWS_S = 2_000.0
"""So many logs a second are a burst: their upkeep would cost as much as taking them."""
MERGE_PATIENCE_US = 90_000_000
"""For so long small files of a burst wait to be merged; what is merged is indexed on the way."""
INDEX_PATIENCE_US = 2 * MERGE_PATIENCE_US
"""For so long a file of a burst waits for an index of its own: by then it should have been merged."""

AHEAD_US = 3_000_000
"""So long a run may take to begin while the machine is busy."""
FLUSH_STEPS_BACK = 5
MOST_HELD_BACK_S = 0.01
FORSAKEN = 2.0
"""A tail of so many times the size that it should have: nobody flushes it, or not in time."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """Logs of one file: how many, and when the first and last of them were recorded."""

    rows: int
    from_us: int
    to_us: int


def much_bytes(flush_bytes: int) -> int:
    """So many bytes in the tail are flushed without waiting for a sensor."""
    return flush_bytes * 3 // 8


def look_bytes(flush_bytes: int) -> int:
    """Whenever so many bytes came, it is looked whether a flush is to be asked for."""
    return flush_bytes // 8


def needs_flush(waiting_bytes: int, oldest_age_us: int, flush_bytes: int) -> bool:
    """Tell whether much waits, or will by the time a run that is asked for now begins."""
    if waiting_bytes < look_bytes(flush_bytes):
        return False
    soon = waiting_bytes * (1 + AHEAD_US / max(1, oldest_age_us))
    return soon >= much_bytes(flush_bytes)


def flush_steps_back(waiting_bytes: int, flush_bytes: int) -> int:
    """By how many steps of priority a flush lets others go first; by none once the tail is half full.

    Far behind, it would hardly get a turn where all cores are busy, and the tail would grow.
    """
    return FLUSH_STEPS_BACK if waiting_bytes < flush_bytes // 2 else 0


def held_back_s(waiting_bytes: int, flush_bytes: int) -> float:
    """For how long the next group of logs is gathered while a flush catches up: 0 until the tail is 3/4 full.

    Groups become larger and cost less, and the flush gets the time. Where none keeps pace at all it would
    help nobody.
    """
    full = waiting_bytes / flush_bytes
    return 0.0 if full > FORSAKEN else MOST_HELD_BACK_S * min(1.0, max(0.0, 4 * full - 3))


def logs_pour_in(files: Iterable[Arrived], now_us: int) -> bool:
    """Tell whether the logs of the last seconds, as far as they are in files, were a burst."""
    since_us = now_us - WINDOW_US
    return sum(_rows_since(one, since_us) for one in files) >= POURING_ROWS_S * WINDOW_US / 1e6


def _rows_since(file: Arrived, since_us: int) -> float:
    """How many logs of a file came since then, if they came evenly."""
    if file.from_us >= since_us:
        return file.rows
    lately_us = max(0, file.to_us - since_us)
    return file.rows * lately_us / max(1, file.to_us - file.from_us)
