"""Values of a column counted for the score of a sheet, a run of rows at a time."""

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from storage.domain.encodings import JSON_ENCODINGS
from storage.domain.results import Values
from storage.domain.sheet_scores import BOOLEAN, NUMERIC, ScoreType, Tally
from storage.engine.arrow_values import compact_json

_TRUE = ["true", "yes", "pass", "passed"]
_FALSE = ["false", "no", "fail", "failed"]


def tally(values: Values, score_type: ScoreType) -> Tally:
    """Count values; words and numbers written as text count only where their kind was asked for."""
    series: pl.Series = values.series
    missing = series.null_count()
    held = series.drop_nulls()
    if values.encoding == "boolean":
        truths = held.cast(pl.Float64)
        return _numbers(truths, missing, 0) if score_type == NUMERIC else _truths(held, missing, 0)
    if values.encoding in {"integer", "double"}:
        if score_type == BOOLEAN:
            return _truths(held != 0, missing, 0)
        return _numbers(held.cast(pl.Float64), missing, 0)
    texts = held.str.strip_chars()
    return (
        _text(texts, missing, score_type) if values.encoding == "text" else _mixed(texts, missing, score_type)
    )


def _text(texts: pl.Series, missing: int, score_type: ScoreType) -> Tally:
    if score_type == BOOLEAN:
        return _words(texts, missing)
    return (
        _numbers(_read(texts), missing, 0)
        if score_type == NUMERIC
        else Tally(missing=missing, others=len(texts))
    )


def _mixed(texts: pl.Series, missing: int, score_type: ScoreType) -> Tally:
    """JSON texts: true, false and numbers, and what strings say where a kind was asked for."""
    if score_type == BOOLEAN:
        return _words(texts.str.strip_chars('"'), missing)
    truths = texts.is_in(["true", "false"])
    if score_type == NUMERIC:
        spelled = texts.replace({"true": "1", "false": "0"}).str.strip_chars('"')
        return _numbers(_read(spelled), missing, 0)
    rest = texts.filter(~truths)
    numbers = _read(rest)
    found = _truths(texts.filter(truths) == "true", missing, 0)
    return found.plus(_numbers(numbers, 0, 0))


def _words(texts: pl.Series, missing: int) -> Tally:
    lower, numbers = texts.str.to_lowercase(), _read(texts)
    known = lower.is_in(_TRUE + _FALSE) | numbers.is_not_null()
    true = lower.is_in(_TRUE) | (numbers != 0).fill_null(value=False)
    return _truths(true.filter(known), missing, int((~known).sum()))


def _read(texts: pl.Series) -> pl.Series:
    found = texts.cast(pl.Float64, strict=False)
    return found.set(~found.is_finite().fill_null(value=True), None)


def _truths(truths: pl.Series, missing: int, others: int) -> Tally:
    trues = int(truths.sum())
    return Tally(trues=trues, falses=len(truths) - trues, missing=missing, others=others)


def _numbers(numbers: pl.Series, missing: int, others: int) -> Tally:
    unread = numbers.null_count()
    return Tally(
        count=len(numbers) - unread, total=float(numbers.sum()), missing=missing, others=others + unread
    )


def row_objects(columns: Mapping[str, Values], count: int) -> Values:
    """Spell rows as one value: the array of objects {title: value}."""
    titles = list(columns)
    held = [_values(values) for values in columns.values()]
    rows = zip(*held, strict=True) if held else [()] * count
    spelled = compact_json([dict(zip(titles, row, strict=True)) for row in rows])
    return Values("json", pl.Series([spelled], dtype=pl.String))


def _values(values: Values) -> list[Any]:
    held: list[Any] = values.series.to_list()
    if values.encoding not in JSON_ENCODINGS:
        return held
    return [None if text is None else json.loads(text) for text in held]
