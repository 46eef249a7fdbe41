"""How many rows are computed at once: few at first where nobody can tell how long their results are."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from storage.domain.results import Chunk, TooMuchAtOnce, Values

_GROWS = 8

Item = TypeVar("Item")


@dataclass(slots=True)
class Pace:
    """So many rows are computed next: at most `most_rows`, whose results have about `most_bytes`."""

    rows: int
    most_rows: int
    most_bytes: int

    def note(self, rows: int, size: int) -> None:
        """Learn how many bytes came of so many rows."""
        if rows:
            fitting = self.most_bytes * rows // max(1, size)
            self.rows = max(1, min(self.most_rows, _GROWS * self.rows, fitting))

    def slow(self, rows: int) -> None:
        """So many rows were too many."""
        self.rows = max(1, rows // _GROWS)


def prompts_pace() -> Pace:
    """For prompts that are filled before models are asked: most have hundreds of characters, some a book."""
    return Pace(64, 4_096, 8 << 20)


class Stretched(Generic[Item]):
    """What is to be done with each row of a chunk, told stretch by stretch as it is asked for, in order.

    `made` tells it of a stretch, with the bytes that are held for that.
    """

    def __init__(
        self, chunk: Chunk, pace: Pace, made: Callable[[Chunk], tuple[Callable[[int], Item], int]]
    ) -> None:
        self._chunk, self._pace, self._made = chunk, pace, made
        self._start = self._end = 0
        self._at: Callable[[int], Item]

    def __call__(self, row: int) -> Item:
        if not self._start <= row < self._end:
            self._start, self._end = row, row
        while row >= self._end:
            count = min(self._pace.rows, len(self._chunk) - row)
            try:
                self._at, size = self._made(_cut(self._chunk, row, count))
            except TooMuchAtOnce:
                self._pace.slow(count)
                continue
            self._end = row + count
            self._pace.note(count, size)
        return self._at(row - self._start)


def _cut(chunk: Chunk, start: int, count: int) -> Chunk:
    return Chunk(
        chunk.row_nos[start : start + count],
        chunk.row_indices[start : start + count],
        {one: Values(held.encoding, held.series.slice(start, count)) for one, held in chunk.columns.items()},
    )
