"""score: columns measured to a number, a whole chunk at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import polars as pl
import rapidfuzz

from pipelines.columns.costs import Heard, unheard
from pipelines.columns.likeness import ALIKE, COMPARE, alike
from pipelines.columns.protocol import RunContext, RunnerKind
from pipelines.columns.values import nulls, numbers, shown
from storage.domain.cells import display_value
from storage.domain.results import Answers, CellError, Chunk, Values

_NO_SCORE = CellError("not_a_score", "A value is neither a number nor one that counts as true or false")
_ENDLESS = CellError("not_finite", "The score is beyond the largest number")
_TRUE = ("true", "yes", "pass", "passed")
_FALSE = ("false", "no", "fail", "failed")

Measured = tuple[pl.Series, Mapping[int, CellError]]


@dataclass(frozen=True, slots=True)
class Score:
    """Measures the rows of a chunk by the column's configuration."""

    config: Mapping[str, Any]
    heard: Heard = unheard

    def compute(self, chunk: Chunk) -> Iterable[Answers]:
        """Yield one answer for the whole chunk: a number a row; null where there is nothing to measure."""
        sources = [chunk.columns[UUID(one)] for one in self.config["sources"]]
        metric = self.config["metric"]
        if metric in ALIKE:
            found, errors = alike(ALIKE[metric], (sources[0], sources[1]), self.heard)
        elif metric in COMPARE:
            found, errors = COMPARE[metric](*sources)
        else:
            found, errors = _combined(sources, self.config)
        endless = found.is_infinite() | found.is_nan()
        errors = {**errors, **dict.fromkeys(endless.arg_true().to_list(), _ENDLESS)}
        found = passed(found, self.config)
        if errors:
            found = found.scatter(list(errors), None)
        yield Answers(Values("double", found) if len(found) else nulls(0), errors=errors)


def _combined(sources: Sequence[Values], config: Mapping[str, Any]) -> Measured:
    scores, wrong = [], []
    for source in sources:
        found, unread = _scores(source, config.get("true_values"), config.get("false_values"))
        scores.append(found)
        wrong.append(unread)
    bad = pl.DataFrame([one.alias(str(at)) for at, one in enumerate(wrong)]).select(
        pl.any_horizontal(pl.all())
    )
    errors = dict.fromkeys(bad.to_series().arg_true().to_list(), _NO_SCORE)
    frame = pl.DataFrame([one.alias(str(at)) for at, one in enumerate(scores)])
    return frame.select(_COMBINE[config["metric"]](frame.columns, config)).to_series(), errors


def _mean(names: Sequence[str], config: Mapping[str, Any]) -> pl.Expr:
    """Nothing weighs nothing: the mean of the values that are there."""
    weights = config.get("weights", [1] * len(names))
    weighed = pl.sum_horizontal(pl.col(name) * weight for name, weight in zip(names, weights, strict=True))
    there = pl.sum_horizontal(
        pl.col(name).is_not_null() * float(weight) for name, weight in zip(names, weights, strict=True)
    )
    return pl.when(there > 0).then(weighed / there)


def _votes(names: Sequence[str], config: Mapping[str, Any]) -> list[pl.Expr]:
    """Whether each source is passed: it reaches the threshold, or is not 0; nothing is not passed."""
    least = config.get("pass_threshold")
    passed = [pl.col(name) != 0 if least is None else pl.col(name) >= least for name in names]
    return [one.fill_null(value=False) for one in passed]


_COMBINE: Mapping[str, Callable[[Sequence[str], Mapping[str, Any]], pl.Expr]] = {
    "weighted_mean": _mean,
    "all": lambda names, config: pl.all_horizontal(_votes(names, config)).cast(pl.Float64),
    "any": lambda names, config: pl.any_horizontal(_votes(names, config)).cast(pl.Float64),
    "min": lambda names, _: pl.min_horizontal(names),
    "max": lambda names, _: pl.max_horizontal(names),
}


def _scores(values: Values, true_values: Any, false_values: Any) -> tuple[pl.Series, pl.Series]:
    """Return each value as a number, and which ones are none; null stays null.

    Values that are listed count as 1 or 0, compared as they are shown. Where one list alone is given, all
    that does not stand in it is the other. Without lists true and false, numbers, and words for either.
    """
    empty = values.series.is_null()
    if true_values is None and false_values is None:
        if values.encoding == "boolean":
            return values.series.cast(pl.Float64), empty & ~empty
        if values.encoding in {"integer", "double"}:
            return numbers(values), empty & ~empty
        return _read(values, _TRUE, _FALSE, folded=True)
    if true_values is None or false_values is None:
        listed = shown(values).is_in(_shown(true_values if false_values is None else false_values))
        found = listed if false_values is None else ~listed
        return found.cast(pl.Float64), empty & ~empty
    return _read(values, _shown(true_values), _shown(false_values), folded=False)


def _shown(listed: Sequence[Any]) -> list[str]:
    return [text for text in map(display_value, listed) if text is not None]


def _read(
    values: Values, true_values: Sequence[str], false_values: Sequence[str], *, folded: bool
) -> tuple[pl.Series, pl.Series]:
    texts = shown(values)
    if folded:
        texts = texts.str.strip_chars().str.to_lowercase()
    frame = pl.DataFrame({"text": texts, "number": numbers(values)})
    score = (
        pl.when(pl.col("text").is_in(list(true_values)))
        .then(1.0)
        .when(pl.col("text").is_in(list(false_values)))
        .then(0.0)
        .otherwise(pl.col("number"))
    )
    found = frame.select(score).to_series()
    return found, found.is_null() & texts.is_not_null()


def passed(found: pl.Series, config: Mapping[str, Any]) -> pl.Series:
    """With a threshold a score is 1 or 0: at least so much, for a distance at most."""
    least, metric = config.get("pass_threshold"), config["metric"]
    if least is None or metric in {"all", "any"}:
        return found
    passed: pl.Series = found <= least if metric == "absolute_numeric_distance" else found >= least
    return passed.cast(pl.Float64)


@contextmanager
def _open(context: RunContext) -> Iterator[Score]:
    yield Score(context.column.config, context.heard)


KIND = RunnerKind(
    engine=lambda _: f"score 1, polars {pl.__version__}, rapidfuzz {rapidfuzz.__version__}",
    open=_open,
    chunk_rows=250_000,
)
