"""What dictionaries of files say about a filter group before any log is read: which files need not be, and
in the simplest case how many logs of a file match.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from storage.domain.filters import Filter, Group, OneOf
from storage.engine.log_sql import quoted
from storage.engine.log_values import MOST_CHARS

if TYPE_CHECKING:
    import duckdb

_SINGLE = frozenset({"engine", "provider_type", "status", "prompt_id"})
_LISTED = frozenset({"tags", "metadata_keys", "tool_names", "output_keys", "input_variable_keys"})
_NESTED = {
    "metadata": "metadata_values",
    "output": "output_values",
    "input_variables": "input_variable_values",
}


@dataclass(frozen=True, slots=True)
class Hint:
    """A log that matches has one of some values; `exact`: a log that has one, matches, and has no other."""

    field: str
    key: str
    values: tuple[str, ...]
    exact: bool


def hints_of(group: Group) -> list[Hint]:
    """What all logs that match have in common, as far as dictionaries know of it."""
    parts: Sequence[Filter | Group] = [group]
    while len(parts) == 1 and isinstance(parts[0], Group) and parts[0].filters:
        one = parts[0]
        if one.logic == "OR" and len(one.filters) > 1:
            return []
        parts = one.filters
    found = [_hint(one, alone=len(parts) == 1) for one in parts if isinstance(one, Filter)]
    return [one for one in found if one is not None]


def _hint(asked: Filter, *, alone: bool) -> Hint | None:
    if asked.negated or not isinstance(asked.test, OneOf):
        return None
    values = tuple(str(value) for value in asked.test.values)
    if any(len(value) > MOST_CHARS for value in values):
        return None
    if asked.field in _SINGLE:
        return Hint(asked.field, "", values, exact=alone)
    if asked.field in _LISTED:
        return Hint(asked.field, "", values, exact=alone and len(values) == 1)
    if asked.field in _NESTED and asked.nested_key is not None:
        exact = alone and (len(values) == 1 or asked.field == "metadata")
        return Hint(_NESTED[asked.field], asked.nested_key, values, exact=exact)
    return None


def hinted_counts(
    connection: "duckdb.DuckDBPyConnection", hints: Sequence[Hint], dictionaries: Mapping[str, Any]
) -> dict[str, int | None]:
    """How many logs match of the files of some dictionaries, by the dictionary's path; None: not known."""
    counts: dict[str, int | None] = dict.fromkeys(dictionaries)
    files = ", ".join(quoted(path) for path in dictionaries)
    for hint in hints:
        marks = ", ".join("?" * len(hint.values)) or "NULL"
        query = (
            f"SELECT filename, CAST(sum(count) AS BIGINT) FROM read_parquet([{files}]) "  # noqa: S608
            f"WHERE field = ? AND key = ? AND value IN ({marks}) GROUP BY filename"
        )
        found = dict(connection.execute(query, [hint.field, hint.key, *hint.values]).fetchall())
        for path in counts:
            if path not in found:
                counts[path] = 0
            elif hint.exact:
                counts[path] = found[path]
    return counts
