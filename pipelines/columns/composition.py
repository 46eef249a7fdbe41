"""composition: a mirror of a column, or an operation over columns of the row; a whole chunk at once."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import polars as pl

from pipelines.columns.costs import MOST_STEPS, TOO_LONG, Heard, steps, stretches, unheard
from pipelines.columns.json_extract import extract, is_json, too_deep
from pipelines.columns.protocol import RunContext, RunnerKind
from pipelines.columns.values import is_empty, json_text, numbers, shown, to_list, values_of
from storage.domain.column_types.binding import Edge
from storage.domain.json_paths import parse_json_path
from storage.domain.results import Answers, CellError, Chunk, Values

_NO_NUMBER = CellError("not_a_number", "A value is no number")
_UNPARSED = CellError("cannot_parse", "The value cannot be read as what it should be")
_NO_PATTERN = CellError("invalid_pattern", "The pattern is no regular expression that can be used here")
_TOO_DEEP = CellError("too_deep", "The value would be nested deeper than 200")
Composed = tuple[Values, dict[int, CellError]]


@dataclass(frozen=True, slots=True)
class Composition:
    """Combines the columns of a chunk by the column's configuration."""

    config: Mapping[str, Any]
    edges: Sequence[Edge]
    heard: Heard = unheard

    def compute(self, chunk: Chunk) -> Iterable[Answers]:
        """Yield one answer for the whole chunk."""
        sources = [chunk.columns[one] for one in _source_ids(self.config)]
        operation = self.config.get("operation")
        if operation is None:
            yield Answers(sources[0])
            return
        if operation == "combine_columns":
            values, errors = _combined(sources, [_name(edge) for edge in self.edges])
            yield Answers(values, errors=errors)
            return
        if operation == "regex_extract":
            values, errors = _regex(sources, self.config, self.heard)
        else:
            values, errors = _OPERATIONS[operation](sources, self.config)
        yield Answers(values, errors=errors)


def _source_ids(config: Mapping[str, Any]) -> list[UUID]:
    if "sources" in config:
        return [UUID(one) for one in config["sources"]]
    source = config["source"]
    return [UUID(source if isinstance(source, str) else source["column_id"])]


def _name(edge: Edge) -> str:
    return str(edge["config_meta"].get("variable_name", edge["column_id"]))


def _coalesce(sources: Sequence[Values], _config: Mapping[str, Any]) -> Composed:
    """Take the first that is neither null nor the empty text; where all are, the last."""
    encodings = {one.encoding for one in sources}
    same = len(encodings) == 1
    encoding = encodings.pop() if same else "json"
    series = [one.series if same else json_text(one) for one in sources]
    *firsts, last = zip(series, sources, strict=True)
    found: pl.Series = last[0]
    for kept, values in reversed(firsts):
        found = kept.zip_with(~is_empty(values), found)
    return Values(encoding, found), {}


def _concat(sources: Sequence[Values], config: Mapping[str, Any]) -> Composed:
    frame = pl.DataFrame([shown(one).fill_null("").alias(str(at)) for at, one in enumerate(sources)])
    joined = frame.select(pl.concat_str(pl.all(), separator=config.get("separator", ""))).to_series()
    return Values("text", joined), {}


def _combined(sources: Sequence[Values], names: Sequence[str]) -> Composed:
    """Make an object of each row: the title that the column had when it was named -> value."""
    pieces: list[pl.Expr] = []
    columns: list[pl.Series] = []
    for at, (values, name) in enumerate(zip(sources, names, strict=True)):
        key = json_text(values_of([name]))[0]
        pieces += [pl.lit(("{" if at == 0 else ",") + key + ":"), pl.col(str(at))]
        columns.append(json_text(values).fill_null("null").alias(str(at)))
    joined = pl.DataFrame(columns).select(pl.concat_str([*pieces, pl.lit("}")])).to_series()
    deep = too_deep(joined).to_list()
    return Values("json", joined.scatter(deep, None) if deep else joined), dict.fromkeys(deep, _TOO_DEEP)


def _json_path(sources: Sequence[Values], config: Mapping[str, Any]) -> Composed:
    found = extract(json_text(sources[0], parse=True), parse_json_path(config["json_path"]))
    return values_of(to_list(Values("json", found))), {}


def _regex(sources: Sequence[Values], config: Mapping[str, Any], heard: Heard) -> Composed:
    texts, pattern = shown(sources[0]), config["pattern"]
    group = config.get("group", min(1, re.compile(pattern).groups))
    work = steps(texts, pl.Series([pattern]).new_from_index(0, len(texts)))
    too_long = work > MOST_STEPS
    errors = dict.fromkeys(too_long.arg_true().to_list(), TOO_LONG)
    if errors:
        texts, work = texts.zip_with(~too_long, texts.clear(len(texts))), work.zip_with(~too_long, work * 0)
    found = [texts.clear()]
    try:
        for start, count in stretches(work, MOST_STEPS, heard):
            found.append(texts.slice(start, count).str.extract(pattern, group))
    except pl.exceptions.ComputeError:
        return Values("text", texts.clear(len(texts))), dict.fromkeys(range(len(texts)), _NO_PATTERN)
    return Values("text", pl.concat(found)), errors


def _parse(sources: Sequence[Values], config: Mapping[str, Any]) -> Composed:
    """Read texts as values; what is empty stays null."""
    source = sources[0]
    empty = is_empty(source)
    kind = config["value_type"]
    if kind == "STRING":
        return Values("text", shown(source)), {}
    if kind == "NUMBER":
        found = _numbers_kept(source)
    elif kind == "BOOLEAN":
        spelled = shown(source).str.strip_chars().str.to_lowercase()
        found = Values(
            "boolean",
            spelled.replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean),
        )
    else:
        found = _parsed(source)
    wrong = (found.series.is_null() & ~empty).arg_true().to_list()
    kept = found.series.zip_with(~empty, found.series.clear(len(found)))
    return Values(found.encoding, kept), dict.fromkeys(wrong, _UNPARSED)


def _parsed(source: Values) -> Values:
    texts = shown(source) if source.encoding in {"text", "json"} else json_text(source)
    return values_of(to_list(Values("json", texts.zip_with(is_json(texts), texts.clear(len(texts))))))


def _numbers_kept(source: Values) -> Values:
    """Read numbers; whole ones stay whole."""
    if source.encoding == "integer":
        return source
    found = numbers(source)
    held = found.drop_nulls()
    whole = bool((held == held.floor()).all()) and bool((held.abs() < 2**53).all())
    spelled_whole = not shown(source).str.contains(r"[.eE]").any()
    if len(held) and whole and spelled_whole:
        return Values("integer", found.cast(pl.Int64))
    return Values("double", found)


def _count(sources: Sequence[Values], _config: Mapping[str, Any]) -> Composed:
    frame = pl.DataFrame([(~is_empty(one)).cast(pl.Int64).alias(str(at)) for at, one in enumerate(sources)])
    return Values("integer", frame.sum_horizontal()), {}


def _least(sources: Sequence[Values], _config: Mapping[str, Any]) -> Composed:
    return _extreme(sources, pl.min_horizontal)


def _greatest(sources: Sequence[Values], _config: Mapping[str, Any]) -> Composed:
    return _extreme(sources, pl.max_horizontal)


def _extreme(sources: Sequence[Values], pick: Callable[..., pl.Expr]) -> Composed:
    """Take the least or the greatest of the numbers; what is empty does not count."""
    whole = all(one.encoding == "integer" for one in sources)
    columns = [one.series if whole else numbers(one) for one in sources]
    wrong = pl.Series([False]).extend_constant(value=False, n=len(columns[0]))[1:]
    for values, column in zip(sources, columns, strict=True):
        wrong |= column.is_null() & ~is_empty(values)
    frame = pl.DataFrame([column.alias(str(at)) for at, column in enumerate(columns)])
    found = frame.select(pick(pl.all())).to_series()
    found = found.zip_with(~wrong, found.clear(len(found)))
    errors = dict.fromkeys(wrong.arg_true().to_list(), _NO_NUMBER)
    return Values("integer" if whole else "double", found), errors


_OPERATIONS: Mapping[str, Callable[[Sequence[Values], Mapping[str, Any]], Composed]] = {
    "coalesce": _coalesce,
    "concat": _concat,
    "json_path": _json_path,
    "parse_value": _parse,
    "count": _count,
    "min": _least,
    "max": _greatest,
}


@contextmanager
def _open(context: RunContext) -> Iterator[Composition]:
    yield Composition(context.column.config, context.column.dependencies, context.heard)


KIND = RunnerKind(engine=lambda _: f"composition 1, polars {pl.__version__}", open=_open, chunk_rows=250_000)
