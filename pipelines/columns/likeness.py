"""How alike two columns are, row by row: the metrics of two sources."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
from pydantic_core import from_json
from rapidfuzz.distance import JaroWinkler, Levenshtein

from pipelines.columns.costs import MOST_PAIRED, TOO_LARGE, Heard, paired, stretches
from pipelines.columns.values import json_text, numbers, shown
from storage.domain.results import CellError, Values

Measured = tuple[pl.Series, Mapping[int, CellError]]

_NO_NUMBER = CellError("not_a_number", "A compared value is no number")
_NO_VECTOR = CellError("not_a_vector", "A compared value is no array of numbers")
_OTHER_LENGTH = CellError("not_comparable", "The compared arrays have different lengths")
_VECTOR = r"^\s*\[[-+0-9.eE,\s]*\]\s*$"
# what stands for a missing value, as a text and as JSON
_NOTHING = ("", "null")
_WORD = re.compile(r"[^\W_]+")


def _distance(left: Values, right: Values) -> Measured:
    one, two = numbers(left), numbers(right)
    found = (one - two).abs()
    return found, dict.fromkeys(found.is_null().arg_true().to_list(), _NO_NUMBER)


def alike(
    likeness: Callable[[pl.Series, pl.Series], pl.Series], sides: tuple[Values, Values], heard: Heard
) -> Measured:
    """Measure pairs by what takes as long as the product of their lengths, in stretches that can be ended."""
    one, two = (json_text(side, parse=True) if likeness is _json else shown(side) for side in sides)
    one, two = one.fill_null(_NOTHING[likeness is _json]), two.fill_null(_NOTHING[likeness is _json])
    differing = one != two
    work = paired(one, two) * differing.cast(pl.Float64)
    too_large = work > MOST_PAIRED
    errors = dict.fromkeys(too_large.arg_true().to_list(), TOO_LARGE)
    if errors:
        two = two.zip_with(~too_large, one)
        work = work.zip_with(~too_large, work * 0)
    found = [pl.Series(dtype=pl.Float64)]
    for start, count in stretches(work, MOST_PAIRED, heard):
        found.append(likeness(one.slice(start, count), two.slice(start, count)))
    return pl.concat(found), errors


def _of_texts(scorer: Callable[..., float]) -> Callable[[pl.Series, pl.Series], pl.Series]:
    """A likeness of texts; nothing is the empty text, and two empty texts are the same."""

    def measured(one: pl.Series, two: pl.Series) -> pl.Series:
        # with numpy it costs 0.1 s to load, which a process that scores nothing should not pay
        import numpy as np  # noqa: PLC0415
        from rapidfuzz import process  # noqa: PLC0415

        found = process.cpdist(one.to_list(), two.to_list(), scorer=scorer, dtype=np.float64, workers=1)
        return pl.Series(found, dtype=pl.Float64)

    return measured


def _exact(left: Values, right: Values) -> Measured:
    return shown(left).eq_missing(shown(right)).cast(pl.Float64), {}


def _token_f1(left: Values, right: Values) -> Measured:
    """The harmonic mean of precision and recall over words: runs of letters and digits, case-folded."""
    one, two = (shown(side).fill_null("").to_list() for side in (left, right))
    return pl.Series(list(map(_f1, one, two)), dtype=pl.Float64), {}


def _f1(one: str, two: str) -> float:
    if one == two:
        return 1.0
    first, second = _WORD.findall(one.casefold()), _WORD.findall(two.casefold())
    if not first or not second:
        return float(first == second)
    left: dict[str, int] = {}
    for word in first:
        left[word] = left.get(word, 0) + 1
    common = 0
    for word in second:
        if left.get(word, 0):
            left[word] -= 1
            common += 1
    return 2 * common / (len(first) + len(second))


def _json(one: pl.Series, two: pl.Series) -> pl.Series:
    """How much of two JSON values agrees."""
    pairs = zip((one == two).to_list(), one.to_list(), two.to_list(), strict=True)
    found = [1.0 if equal else json_likeness(from_json(a), from_json(b)) for equal, a, b in pairs]
    return pl.Series(found, dtype=pl.Float64)


def json_likeness(one: Any, two: Any) -> float:
    """Say how alike two JSON values are, from 0 to 1.

    Objects: the mean over the keys of either. Arrays: the mean over the places of the longer. Texts: by edit
    distance. All else is the same or is not; true is not 1.
    """
    if isinstance(one, dict) and isinstance(two, dict):
        keys = one.keys() | two.keys()
        shared = one.keys() & two.keys()
        return sum(json_likeness(one[key], two[key]) for key in sorted(shared)) / len(keys) if keys else 1.0
    if isinstance(one, list) and isinstance(two, list):
        longer = max(len(one), len(two))
        return sum(map(json_likeness, one, two)) / longer if longer else 1.0
    if isinstance(one, str) and isinstance(two, str):
        return float(Levenshtein.normalized_similarity(one, two))
    return float(isinstance(one, bool) == isinstance(two, bool) and one == two)


def _cosine(left: Values, right: Values) -> Measured:
    """The cosine of two vectors, 0 where it is negative or one of them is all zero."""
    one, two = _vectors(left), _vectors(right)
    frame = pl.DataFrame({"one": one, "two": two})
    a, b = pl.col("one"), pl.col("two")
    missing = frame.select(a.is_null() | b.is_null()).to_series()
    other = frame.select((a.list.len() != b.list.len()).fill_null(value=False)).to_series()
    errors = dict.fromkeys(missing.arg_true().to_list(), _NO_VECTOR)
    errors |= dict.fromkeys(other.arg_true().to_list(), _OTHER_LENGTH)
    held = frame.filter(~(missing | other))
    size = (a * a).list.sum().sqrt() * (b * b).list.sum().sqrt()
    cosine = pl.when(size > 0).then((a * b).list.sum() / size).otherwise(0.0).clip(0.0, 1.0).round(12)
    found = pl.Series([None], dtype=pl.Float64).extend_constant(None, len(frame))[1:]
    return found.scatter((~(missing | other)).arg_true(), held.select(cosine).to_series()), errors


def _vectors(values: Values) -> pl.Series:
    """Return arrays of numbers; null for all else."""
    texts = json_text(values, parse=True)
    arrays = texts.set(~texts.str.contains(_VECTOR).fill_null(value=False), None)
    try:
        return arrays.str.json_decode(pl.List(pl.Float64))
    except pl.exceptions.ComputeError:
        return pl.Series(list(map(_vector, arrays.to_list())), dtype=pl.List(pl.Float64))


def _vector(text: str | None) -> Sequence[float] | None:
    try:
        return None if text is None else [float(number) for number in from_json(text)]
    except (ValueError, TypeError):
        return None


ALIKE: Mapping[str, Callable[[pl.Series, pl.Series], pl.Series]] = {
    "levenshtein": _of_texts(Levenshtein.normalized_similarity),
    "jaro_winkler": _of_texts(JaroWinkler.normalized_similarity),
    "json_similarity": _json,
}
COMPARE: Mapping[str, Callable[[Values, Values], Measured]] = {
    "absolute_numeric_distance": _distance,
    "token_f1": _token_f1,
    "exact_match": _exact,
    "cosine_similarity": _cosine,
}
