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


@dataclass(frozen=True, slots=True)
class Arrived:
    """Logs of one file: how many, and when the first and last of them were recorded."""

    rows: int
    from_us: int
    to_us: int


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
