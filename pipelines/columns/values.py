"""Columns of JSON values in the forms that vectorised runners need: as shown, as JSON text, as numbers."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
from pydantic_core import from_json

from pipelines.columns.json_extract import is_json
from storage.domain.encodings import JSON_ENCODINGS, Encoding, encoding_of
from storage.domain.results import Values
from storage.domain.transcripts import input_text

_ESCAPED = r'["\\\x00-\x1f]'

_POLARS: dict[Encoding, pl.DataType | type[pl.DataType]] = {
    "text": pl.String,
    "integer": pl.Int64,
    "double": pl.Float64,
    "boolean": pl.Boolean,
    "json": pl.String,
    "messages": pl.String,
}


def values_of(kept: Sequence[Any]) -> Values:
    """Spell JSON values in the tightest encoding that keeps each."""
    encoding = encoding_of(kept)
    if encoding in JSON_ENCODINGS:
        kept = [None if value is None else _compact(value) for value in kept]
    return Values(encoding, pl.Series(kept, dtype=_POLARS[encoding]))


def nulls(count: int) -> Values:
    """As many nulls."""
    return Values("text", pl.Series([None], dtype=pl.String).extend_constant(None, count)[1:])


def to_list(values: Values) -> list[Any]:
    """Return the JSON values themselves."""
    held = values.series.to_list()
    if values.encoding not in JSON_ENCODINGS:
        return list(held)
    return [None if text is None else from_json(text) for text in held]


def shown(values: Values) -> pl.Series:
    """Return each value as a cell shows it: a string itself, else compact JSON; null stays null."""
    series: pl.Series = values.series
    match values.encoding:
        case "integer" | "boolean":
            return series.cast(pl.String)
        case "double":
            return _mapped(series, json.dumps)
        case "messages":
            return _mapped(series, lambda text: input_text(json.loads(text)))
        case "json" if series.str.starts_with('"').any():
            return _mapped(series, lambda text: json.loads(text) if text[0] == '"' else text)
    return series


def json_text(values: Values, *, parse: bool = False) -> pl.Series:
    """Return each value as JSON text; with `parse`, a string that is itself JSON counts as what it says."""
    series: pl.Series = values.series
    if values.encoding == "text":
        return _where(~is_json(series), series, _quoted) if parse else _quoted(series)
    if values.encoding == "json":
        # of JSON only strings may say something else than they are
        return _where(series.str.starts_with('"'), series, _reread) if parse else series
    return series if values.encoding == "messages" else shown(values)


def _where(mask: pl.Series, series: pl.Series, change: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Return a series changed where a mask says so."""
    at = mask.fill_null(value=False).arg_true()
    if len(at) == len(series):
        return change(series)
    # a copy, for it is written in place
    return series.clone().scatter(at, change(series.gather(at))) if len(at) else series


def _reread(spelled: pl.Series) -> pl.Series:
    return json_text(Values("text", _mapped(spelled, json.loads)), parse=True)


def numbers(values: Values) -> pl.Series:
    """Return each value as a double; null where it is none, also for texts that spell a finite number."""
    series: pl.Series = values.series
    if values.encoding in {"integer", "double"}:
        return series.cast(pl.Float64)
    if values.encoding == "boolean":
        return pl.Series(series.name, [None], dtype=pl.Float64).extend_constant(None, len(series))[1:]
    found = shown(values).str.strip_chars().cast(pl.Float64, strict=False)
    return found.set(~found.is_finite().fill_null(value=True), None)


def is_empty(values: Values) -> pl.Series:
    """Say of each value whether nothing stands there: null or the empty text."""
    series: pl.Series = values.series
    if values.encoding == "text":
        return (series == "").fill_null(value=True)
    if values.encoding == "json":
        return (series == '""').fill_null(value=True)
    return series.is_null()


def _quoted(series: pl.Series) -> pl.Series:
    """Spell texts as JSON strings; most have nothing to escape."""
    plain = (
        pl.DataFrame({"text": series}).select(pl.concat_str([pl.lit('"'), "text", pl.lit('"')])).to_series()
    )
    special = series.str.contains(_ESCAPED).fill_null(value=False)
    if not special.any():
        return plain
    at = special.arg_true()
    return plain.scatter(at, _mapped(series.gather(at), _compact))


def _mapped(series: pl.Series, change: Callable[[Any], str | None]) -> pl.Series:
    kept = [None if value is None else change(value) for value in series.to_list()]
    return pl.Series(series.name, kept, dtype=pl.String)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
