"""What dictionaries of files say about a filter group before any log is read: which files need not be, and
in the simplest case how many logs of a file match.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from storage.domain.filters import Filter, Group, OneOf
from storage.engine.log_sql import quoted
from storage.engine.log_values import MOST_CHARS
from storage.engine.lru import Lru

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

    @property
    def fingerprint(self) -> bytes:
        return blake2b(repr(self).encode(errors="surrogatepass"), digest_size=16).digest()


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


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of a file: how many of its logs match (None: unknown), which may (None: any)."""

    count: int | None = None
    ids: tuple[int, ...] | None = None

    def also(self, other: "Told") -> "Told":
        """Return what both tell together."""
        counts = [one.count for one in (self, other) if one.count is not None]
        few = [one.ids for one in (self, other) if one.ids is not None]
        return Told(min(counts, default=None), min(few, key=len, default=None))

    @property
    def weight(self) -> int:
        return 1 + len(self.ids or ())


Kept = Lru[tuple[str, bytes], Told]
"""What dictionaries, which never change, told of hints, by path and fingerprint."""


def hinted(
    connection: "duckdb.DuckDBPyConnection", hints: Sequence[Hint], dictionaries: Collection[str], kept: Kept
) -> dict[str, Told]:
    """What some dictionaries tell of their files, by the dictionary's path."""
    told = dict.fromkeys(dictionaries, Told())
    for hint in hints:
        fingerprint = hint.fingerprint
        known = {
            path: found for path in dictionaries if (found := kept.find((path, fingerprint))) is not None
        }
        if left := [path for path in dictionaries if path not in known]:
            fresh = _told(connection, hint, left)
            for path, found in fresh.items():
                kept.put((path, fingerprint), found)
            known |= fresh
        told = {path: one.also(known[path]) for path, one in told.items()}
    return told


def _told(
    connection: "duckdb.DuckDBPyConnection", hint: Hint, dictionaries: Sequence[str]
) -> dict[str, Told]:
    files = ", ".join(quoted(path) for path in dictionaries)
    marks = ", ".join("?" * len(hint.values)) or "NULL"
    query = (
        "SELECT filename, CAST(sum(count) AS BIGINT), "  # noqa: S608
        "CASE WHEN count(ids) = count(*) THEN flatten(list(ids)) END "
        f"FROM read_parquet([{files}]) WHERE field = ? AND key = ? AND value IN ({marks}) "
        "GROUP BY filename"
    )
    rows = connection.execute(query, [hint.field, hint.key, *hint.values]).fetchall()
    found = {
        path: Told(count if hint.exact else None, None if ids is None else tuple(ids))
        for path, count, ids in rows
    }
    return {path: found.get(path, _NONE) for path in dictionaries}


_NONE = Told(0, ())
