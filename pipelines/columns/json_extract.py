"""A place in JSON values, for a whole column at once."""

import json
from collections.abc import Sequence

import duckdb
import polars as pl
from pydantic_core import from_json

# What the engine takes for JSON and others may not: numbers that are not finite, or endless; deep nesting.
_DOUBTFUL = r"(?i)nan|inf|e[+]?[0-9]{3}|[0-9]{300}"
_NESTED = r"[\[{]"
_SURELY_SHALLOW = 100


def extract(texts: pl.Series, steps: Sequence[str | int]) -> pl.Series:
    """Return what stands at a path in each JSON text, as compact JSON; null where nothing does."""
    if not steps:
        return texts
    return _ask("SELECT CAST(json_extract(text, ?) AS VARCHAR) AS found FROM rows", texts, [_path(steps)])


def is_json(texts: pl.Series) -> pl.Series:
    """Say of each text whether it is JSON that every reader understands: finite numbers, nested 200 deep."""
    found = _ask("SELECT coalesce(json_valid(text), false) AS found FROM rows", texts, [])
    doubtful = texts.str.contains(_DOUBTFUL) | (texts.str.count_matches(_NESTED) > _SURELY_SHALLOW)
    at = (found & doubtful.fill_null(value=False)).arg_true()
    return found.scatter(at, [_is_sound(text) for text in texts.gather(at).to_list()]) if len(at) else found


def too_deep(texts: pl.Series) -> pl.Series:
    """Return the places of JSON texts that are nested deeper than readers follow."""
    nested = (texts.str.count_matches(_NESTED) > _SURELY_SHALLOW).fill_null(value=False).arg_true()
    return nested.filter(
        pl.Series([not _is_sound(text) for text in texts.gather(nested).to_list()], dtype=pl.Boolean)
    )


def _is_sound(text: str) -> bool:
    try:
        json.dumps(from_json(text, allow_inf_nan=False), allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return True


def _ask(query: str, texts: pl.Series, parameters: Sequence[str]) -> pl.Series:
    # the text column comes as Arrow, and the rows stay in their order
    with duckdb.connect(config={"threads": 1, "preserve_insertion_order": True}) as connection:
        connection.register("rows", pl.DataFrame({"text": texts}).to_arrow())
        found = connection.sql(query, params=list(parameters)).to_arrow_table()
    return pl.Series(found.column("found"))


def _path(steps: Sequence[str | int]) -> str:
    return "$" + "".join(_step(one) for one in steps)


def _step(step: str | int) -> str:
    if isinstance(step, str):
        escaped = step.replace('"', '\\"')
        return f'."{escaped}"'
    return f"[{step}]" if step >= 0 else f"[#{step}]"
