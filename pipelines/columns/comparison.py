"""comparison: two columns, or one and a target, to true or false; a whole chunk at once."""

import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import polars as pl
from pydantic_core import from_json

from pipelines.columns.costs import MOST_STEPS, TOO_LONG, Heard, steps, stretches, unheard
from pipelines.columns.json_extract import extract
from pipelines.columns.protocol import RunContext, RunnerKind
from pipelines.columns.values import json_text, numbers, shown, values_of
from storage.domain.json_paths import parse_json_path
from storage.domain.results import Answers, CellError, Chunk, Values

_ORDER: Mapping[str, Callable[[Any, Any], Any]] = {
    "equals": operator.eq,
    "not_equals": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_EQUALITY = {"equals": True, "not_equals": False}
_NO_NUMBER = CellError("not_a_number", "A compared value is no number")
_NO_ORDER = CellError("not_comparable", "Values of these kinds have no order")
_NO_PATTERN = CellError("invalid_pattern", "The pattern is no regular expression that can be used here")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares the rows of a chunk by the column's configuration."""

    config: Mapping[str, Any]
    heard: Heard = unheard

    def compute(self, chunk: Chunk) -> Iterable[Answers]:
        """Yield one answer for the whole chunk: true or false a row."""
        sides = [chunk.columns[UUID(one)] for one in self.config["sources"]]
        if len(sides) == 1:
            sides.append(_repeated(self.config["target"], len(chunk)))
        how = self.config["comparison_type"]
        compare = {"STRING": _texts, "NUMBER": _numbers, "JSON": _jsons}[how["type"]]
        asked = _Asked(how, fixed="target" in self.config, heard=self.heard)
        found, errors = compare(sides[0], sides[1], asked)
        values = pl.Series(found, dtype=pl.Boolean)
        if errors:
            values = values.scatter(list(errors), None)
        yield Answers(Values("boolean", values), errors=errors)


Compared = tuple[pl.Series, dict[int, CellError]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """How two columns are compared; `fixed`: the second is one value over and over."""

    how: Mapping[str, Any]
    fixed: bool
    heard: Heard


def _texts(left: Values, right: Values, asked: _Asked) -> Compared:
    """Compare what is shown. Nothing equals nothing only, and is neither before nor after anything."""
    one, two, name = shown(left), shown(right), asked.how["operator"]
    if name == "equals":
        return one.eq_missing(two), {}
    if name == "not_equals":
        return one.ne_missing(two), {}
    if name == "regex":
        return _matches(one, two, asked)
    if name in _ORDER:
        return _ORDER[name](one, two).fill_null(value=False), {}
    frame = pl.DataFrame({"one": one, "two": two})
    return frame.select(_OF_TEXT[name].fill_null(value=False)).to_series(), {}


_OF_TEXT = {
    "starts_with": pl.col("one").str.starts_with(pl.col("two")),
    "ends_with": pl.col("one").str.ends_with(pl.col("two")),
    "contains": pl.col("one").str.contains(pl.col("two"), literal=True),
}


def _matches(one: pl.Series, two: pl.Series, asked: _Asked) -> Compared:
    work = steps(one, two)
    too_long = work > MOST_STEPS
    errors = dict.fromkeys(too_long.arg_true().to_list(), TOO_LONG)
    texts = one.zip_with(~too_long, one.clear(len(one))) if errors else one
    found: list[pl.Series] = []
    for start, count in stretches(work.zip_with(~too_long, work * 0), MOST_STEPS, asked.heard):
        piece, wrong = _found(texts.slice(start, count), two.slice(start, count), fixed=asked.fixed)
        found.append(piece)
        errors |= {start + at: _NO_PATTERN for at in wrong}
    return pl.concat(found) if found else pl.Series(dtype=pl.Boolean), errors


def _found(texts: pl.Series, patterns: pl.Series, *, fixed: bool) -> tuple[pl.Series, list[int]]:
    """Say of each text whether it holds its pattern, and where the pattern is none."""
    if fixed:
        # compiled once, not for each row
        try:
            return texts.str.contains(patterns[0]).fill_null(value=False), []
        except pl.exceptions.ComputeError:
            return texts.is_null(), list(range(len(texts)))
    frame = pl.DataFrame({"text": texts, "pattern": patterns})
    found = frame.select(pl.col("text").str.contains(pl.col("pattern"), strict=False)).to_series()
    wrong = found.is_null() & texts.is_not_null() & patterns.is_not_null()
    return found.fill_null(value=False), wrong.arg_true().to_list()


def _numbers(left: Values, right: Values, asked: _Asked) -> Compared:
    compare = _ORDER[asked.how["operator"]]
    if left.encoding == right.encoding == "integer":
        one, two = left.series, right.series
    else:
        one, two = numbers(left), numbers(right)
    wrong = one.is_null() | two.is_null()
    return compare(one, two).fill_null(value=False), dict.fromkeys(wrong.arg_true().to_list(), _NO_NUMBER)


def _jsons(left: Values, right: Values, asked: _Asked) -> Compared:
    """Compare what JSON says: 1 is 1.0, and the order of keys does not matter."""
    how = asked.how
    path = parse_json_path(how["json_path"]) if "json_path" in how else ()
    one = extract(json_text(left, parse=True), path)
    two = json_text(right, parse=True) if asked.fixed else extract(json_text(right, parse=True), path)
    if how["operator"] in _EQUALITY:
        return _same(one, two) == _EQUALITY[how["operator"]], {}
    if how["operator"] == "regex":
        # a pattern is looked for in texts alone
        one, two = _string(one), _string(two)
        matched, wrong = _matches(one, two, asked)
        return matched & one.is_not_null() & two.is_not_null(), wrong
    compare = _JSON[how["operator"]]
    found: list[bool] = []
    errors: dict[int, CellError] = {}
    for at, (a, b) in enumerate(zip(one.to_list(), two.to_list(), strict=True)):
        try:
            found.append(compare(_load(a), _load(b)))
        except TypeError:
            found.append(False)
            errors[at] = _NO_ORDER
    return pl.Series(found, dtype=pl.Boolean), errors


def _same(one: pl.Series, two: pl.Series) -> pl.Series:
    """Say of each pair of JSON texts whether they say the same; only those that differ are read."""
    one, two = one.fill_null("null"), two.fill_null("null")
    same = one == two
    differing = (~same).arg_true()
    if not len(differing):
        return same
    pairs = zip(one.gather(differing).to_list(), two.gather(differing).to_list(), strict=True)
    equal = [_says_the_same(left, right) for left, right in pairs]
    return same.scatter(differing, pl.Series(equal, dtype=pl.Boolean))


def _says_the_same(left: str, right: str) -> bool:
    a, b = from_json(left), from_json(right)
    # what is not equal here is not, which is soon said; only of booleans more must be asked: true is not 1
    return bool(a == b) and (not (_may_hold_booleans(left) or _may_hold_booleans(right)) or json_equal(a, b))


def _may_hold_booleans(text: str) -> bool:
    return "true" in text or "false" in text


def _load(text: str | None) -> Any:
    return None if text is None else from_json(text)


def json_equal(one: Any, two: Any) -> bool:
    """Say whether two JSON values are the same; true is not 1."""
    left = [(one, two)]
    while left:
        a, b = left.pop()
        if isinstance(a, bool) != isinstance(b, bool):
            return False
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                return False
            left.extend((a[key], b[key]) for key in a)
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            left.extend(zip(a, b, strict=True))
        elif a != b:
            return False
    return True


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compared(a: Any, b: Any) -> bool:
        both_numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (a, b))
        if both_numbers or (isinstance(a, str) and isinstance(b, str)):
            return compare(a, b)
        raise TypeError

    return compared


def _contains(a: Any, b: Any) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return b in a
    if isinstance(a, list):
        return any(json_equal(item, b) for item in a)
    if isinstance(a, dict):
        return isinstance(b, str) and b in a
    return False


def _of_strings(question: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    return lambda a, b: isinstance(a, str) and isinstance(b, str) and question(a, b)


def _string(texts: pl.Series) -> pl.Series:
    """Return the strings among JSON texts; null for all else."""
    strings = texts.str.starts_with('"').fill_null(value=False)
    held = [json.loads(text) if is_one else None for text, is_one in zip(texts, strings, strict=True)]
    return pl.Series(held, dtype=pl.String)


_JSON: Mapping[str, Callable[[Any, Any], bool]] = {
    "lt": _ordered(operator.lt),
    "le": _ordered(operator.le),
    "gt": _ordered(operator.gt),
    "ge": _ordered(operator.ge),
    "contains": _contains,
    "starts_with": _of_strings(str.startswith),
    "ends_with": _of_strings(str.endswith),
}


def _repeated(target: Any, count: int) -> Values:
    one = values_of([target])
    return Values(one.encoding, one.series.extend_constant(one.series[0], count)[1:])


@contextmanager
def _open(context: RunContext) -> Iterator[Comparison]:
    yield Comparison(context.column.config, context.heard)


KIND = RunnerKind(engine=lambda _: f"comparison 1, polars {pl.__version__}", open=_open, chunk_rows=250_000)
