"""A place in JSON values, for a whole column at once."""

from collections.abc import Sequence

import duckdb
import polars as pl


def extract(texts: pl.Series, steps: Sequence[str | int]) -> pl.Series:
    """Return what stands at a path in each JSON text, as compact JSON; null where nothing does."""
    if not steps:
        return texts
    return _ask("SELECT CAST(json_extract(text, ?) AS VARCHAR) AS found FROM rows", texts, [_path(steps)])


def is_json(texts: pl.Series) -> pl.Series:
    """Say of each text whether it is JSON."""
    return _ask("SELECT coalesce(json_valid(text), false) AS found FROM rows", texts, [])


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
