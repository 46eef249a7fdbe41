"""Work that grows faster than the texts: what it costs, and stretches of it, between which a run can end."""

from collections.abc import Callable, Iterator

import polars as pl

from storage.domain.patterns import size_of_pattern
from storage.domain.results import CellError

Heard = Callable[[int, int], None]

# about a second each, of comparisons of characters by 64 at once, and of steps of a pattern
MOST_PAIRED = 10_000_000_000
MOST_STEPS = 500_000_000
TOO_LARGE = CellError("input_too_large", "The texts are too long to be compared in this way")
TOO_LONG = CellError("input_too_large", "The text is too long for so large a pattern")


def unheard(_completed: int, _failed: int) -> None:
    """Tell nobody."""


def stretches(work: pl.Series, most: float, heard: Heard) -> Iterator[tuple[int, int]]:
    """Yield (start, count) of rows that together are at most so much work, or one row.

    Between them the client is told, so that a run that was cancelled ends.
    """
    done = work.cast(pl.Float64).fill_null(0.0).cum_sum()
    start = 0
    while start < len(work):
        before = done[start - 1] if start else 0.0
        end = max(start + 1, int(done.search_sorted(before + most, side="right")))
        yield start, end - start
        start = end
        if start < len(work):
            heard(0, 0)


def paired(one: pl.Series, two: pl.Series) -> pl.Series:
    """Return how much work each pair of texts is that is compared character by character."""
    frame = pl.DataFrame({"one": one, "two": two})
    sizes = pl.col("one").str.len_bytes().cast(pl.Float64) * pl.col("two").str.len_bytes()
    return frame.select(sizes.fill_null(0.0)).to_series()


def steps(texts: pl.Series, patterns: pl.Series) -> pl.Series:
    """Return how much work it is to find a pattern in each text."""
    sizes = {one: float(size_of_pattern(one)) for one in patterns.unique().drop_nulls().to_list()}
    found = patterns.replace_strict(sizes, default=None, return_dtype=pl.Float64) if sizes else None
    lengths = texts.str.len_bytes().cast(pl.Float64)
    return (lengths * 0.0 if found is None else lengths * found).fill_null(0.0)
