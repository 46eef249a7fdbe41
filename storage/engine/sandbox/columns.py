"""Columns of values on their way into a worker: cut into batches, each spelled as JSON arrays."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from storage.domain.encodings import JSON_ENCODINGS, Encoding
from storage.domain.results import Values

_SQL_TYPES: Mapping[Encoding, str] = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "json": "JSON",
    "messages": "JSON",
}
NO_TYPE = "NULL"
_ESCAPED = r'["\\\x00-\x1f]'
_INTEGER_DIGITS = 19  # fewer fit into 64 bits


@dataclass(frozen=True, slots=True)
class Inputs:
    """The columns that an expression reads, by the names that it knows them by; all of `count` values."""

    columns: Mapping[str, Values]
    count: int

    def parts(self, start: int, count: int) -> list[bytes]:
        """Spell rows as a JSON array a column."""
        return [
            _spelled(values.encoding, values.series.slice(start, count)) for values in self.columns.values()
        ]


@dataclass(frozen=True, slots=True)
class TypedInputs:
    """Rows whose values have the same SQL types, column by column; `rows` are their places, None: all."""

    inputs: Inputs
    types: tuple[str, ...]
    rows: Sequence[int] | None = None


def by_type(inputs: Inputs) -> Iterator[TypedInputs]:
    """Put rows together by the types of their values; a null takes the type of its column's other values.

    What a row computes to must not hang on the kinds that its neighbours happen to have.
    """
    if all(values.encoding not in JSON_ENCODINGS for values in inputs.columns.values()):
        yield TypedInputs(inputs, tuple(_sql_type(values) for values in inputs.columns.values()))
        return
    names = list(inputs.columns)
    kinds = pl.DataFrame(
        {str(at): _kinds(values) for at, values in enumerate(inputs.columns.values())}
    ).with_row_index("row")
    for kind, group in kinds.group_by([str(at) for at in range(len(names))], maintain_order=True):
        rows = group["row"]
        chosen = {
            name: _as_kind(values, str(wanted), values.series.gather(rows))
            for (name, values), wanted in zip(inputs.columns.items(), kind, strict=True)
        }
        types = tuple(_sql_type(values) for values in chosen.values())
        everything = len(rows) == inputs.count
        yield TypedInputs(Inputs(chosen, len(rows)), types, None if everything else rows.to_list())


def _spelled(encoding: Encoding, series: pl.Series) -> bytes:
    if encoding == "text" and _is_plain(series):
        joined = series.str.join('","').item()
        return f'["{joined}"]'.encode()
    if encoding in {"text", "double"}:
        return json.dumps(series.to_list(), ensure_ascii=False, separators=(",", ":")).encode()
    texts = series if encoding in JSON_ENCODINGS else series.cast(pl.String)
    return f"[{texts.fill_null('null').str.join(',').item()}]".encode() if len(texts) else b"[]"


def _is_plain(series: pl.Series) -> bool:
    """Whether all are there and have nothing to escape: most columns are, and are joined as they stand."""
    return len(series) > 0 and not series.null_count() and not series.str.contains(_ESCAPED).any()


def _sql_type(values: Values) -> str:
    return NO_TYPE if values.series.null_count() == len(values) else _SQL_TYPES[values.encoding]


def _kinds(values: Values) -> pl.Series:
    """The encoding that each value of a column would have by itself; a null has that of the value before."""
    if values.encoding not in JSON_ENCODINGS:
        return pl.Series([values.encoding]).extend_constant(values.encoding, len(values))[1:]
    text = pl.col("text")
    first = text.str.slice(0, 1)
    whole = text.str.len_bytes() < _INTEGER_DIGITS
    kind = (
        pl.when(text.is_null())
        .then(None)
        .when(first == '"')
        .then(pl.lit("text"))
        .when(first.is_in(["t", "f"]))
        .then(pl.lit("boolean"))
        .when(first.is_in(["{", "["]))
        .then(pl.lit("json"))
        .when(text.str.contains("[.eE]"))
        .then(pl.lit("double"))
        .when(whole)
        .then(pl.lit("integer"))
        .otherwise(pl.lit("json"))
    )
    frame = pl.DataFrame({"text": values.series})
    most = frame.select(kind.drop_nulls().mode().sort().first()).item()
    return frame.select(kind.fill_null(most or "json")).to_series()


def _as_kind(values: Values, kind: str, chosen: pl.Series) -> Values:
    """Read JSON texts of one kind as that."""
    if values.encoding not in JSON_ENCODINGS or kind == "json":
        return Values(values.encoding, chosen)
    read: list[Any] = [None if text is None else json.loads(text) for text in chosen.to_list()]
    types = {"text": pl.String, "boolean": pl.Boolean, "integer": pl.Int64, "double": pl.Float64}
    encoding: Encoding = kind  # type: ignore[assignment]  # one of the four above
    return Values(encoding, pl.Series(read, dtype=types[kind]))
