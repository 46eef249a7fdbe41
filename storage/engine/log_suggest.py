"""Values that logs have, the most frequent first: from the dictionaries of files, the rest counted anew."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from storage.engine.filter_sql import as_pattern
from storage.engine.log_search import LogSearch
from storage.engine.log_tally import rows_of
from storage.engine.log_values import MOST_CHARS
from storage.engine.rows.log_segments import Segment


def _one(value: str) -> str:
    return f"[{value}]"


_OF_OUTPUT = "list_transform(list_filter(output_values, lambda p: p.key = ?), lambda p: p.value)"
# What a log has of each field, as a list; a question mark stands for the key.
_VALUES: Mapping[str, str] = {
    "engine": _one("model"),
    "provider_type": _one("provider"),
    "prompt_id": _one("CAST(prompt_id AS VARCHAR)"),
    "prompt": _one("prompt_name"),
    "tags": "tags",
    "metadata_keys": "map_keys(metadata)",
    "status": _one("status"),
    "tool_names": "output_tool_names",
    "output_keys": "list_transform(output_values, lambda p: p.key)",
    "input_variable_keys": "json_keys(prompt_input_variables)",
    "metadata_values": _one("metadata[?]"),
    "output_values": _OF_OUTPUT,
    "input_variable_values": _one("json_extract_string(prompt_input_variables, ?)"),
}
_TALLY = "tally_"
_BOUND_CHARS = 4
_LAST_CHAR = chr(0x10FFFF)
# long s and the sign of the kelvin
_BEYOND_ASCII = {"s": "\u017f", "k": "\u212a"}
_PLAIN = frozenset({"engine", "provider_type", "prompt_id", "prompt", "status"})
MOST_SCOPED = 2_000_000
"""So many logs are read at most for the values that a scope has of a nested field, a second of CPU time."""
OF_ANSWERS = frozenset({"tool_names", "output_keys", "output_values"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which values: of a field (and key), that begin with a text in any case; of one prompt, if said so."""

    field: str
    key: str | None
    prefix: str
    prompt_id: int | None
    limit: int


def suggest(search: LogSearch, wanted: Wanted, *, scoped: bool) -> list[str]:
    """Return distinct values, the most frequent first, then alphabetically.

    Frequency counts logs. Empty values and those of more than 256 characters are no suggestions. In a scope,
    fields that a log has many values of are counted in the newest files.
    """
    known, rest = search.dictionaries() if not scoped else ([], _in_scope(search, wanted))
    counted, parameters = _from_logs(search, wanted, rest)
    sources = [counted]
    if known:
        select, own = _from_dictionaries(search, wanted, known)
        sources.append(select)
        parameters += own
    prefix = ""
    if wanted.prefix:
        prefix = "AND regexp_matches(value, ?)"
        parameters.append(rf"(?i)\A{as_pattern(wanted.prefix)}")
    query = (
        f"SELECT value FROM ({' UNION ALL '.join(sources)}) "  # noqa: S608
        f"WHERE value <> '' AND length(value) <= {MOST_CHARS} {prefix} "
        f"GROUP BY value ORDER BY sum(count) DESC, value LIMIT {wanted.limit:d}"
    )
    return [row[0] for row in search.fetch(query, parameters)]


def _in_scope(search: LogSearch, wanted: Wanted) -> Sequence[Segment] | None:
    """The files that are read for a scope; None: all."""
    return None if wanted.field in _PLAIN else search.newest(MOST_SCOPED)


def _from_dictionaries(search: LogSearch, wanted: Wanted, paths: Sequence[str]) -> tuple[str, list[Any]]:
    """SELECT of value and count over the files that dictionaries speak of."""
    key = _dictionary_key(wanted)
    tally = search.tally(wanted.field, key, paths)
    bounds = prefix_bounds(wanted.prefix)
    if tally.whole or not bounds:
        search.show(_TALLY, tally.values)
        return f"SELECT value, count FROM {_TALLY}", []  # noqa: S608
    # dictionaries are in the order of values: little of them begins as what is asked for
    begins = " OR ".join(["(value >= ? AND value < ?)"] * len(bounds))
    own = [wanted.field] if key is None else [wanted.field, key]
    rows = rows_of(paths, keyed=key is not None)
    return f"{rows} AND ({begins})", [*own, *(bound for pair in bounds for bound in pair)]


def prefix_bounds(prefix: str) -> list[tuple[str, str]]:
    """Ranges of texts with all that begin with a prefix in any case; none where that cannot be told."""
    start = prefix[:_BOUND_CHARS]
    if not start.isascii():
        return []
    spelled = ["".join(chars) for chars in product(*(_spellings(char) for char in start))]
    return [(one, one + _LAST_CHAR) for one in spelled if one]


def _spellings(char: str) -> list[str]:
    """A character of ASCII and those that are the same in another case."""
    return list(dict.fromkeys([char, char.lower(), char.upper(), *_BEYOND_ASCII.get(char.lower(), "")]))


def _from_logs(search: LogSearch, wanted: Wanted, rest: Sequence[Segment] | None) -> tuple[str, list[Any]]:
    """SELECT of value and count over the logs of a search that no dictionary speaks of."""
    matching, parameters = search.matching(rest)
    own: list[Any] = []
    if "?" in _VALUES[wanted.field]:
        key = wanted.key or ""
        pointer = "/" + key.replace("~", "~0").replace("/", "~1")
        own = [pointer if wanted.field == "input_variable_values" else key]
    narrowed = ""
    narrowed_by: list[Any] = []
    if wanted.prompt_id is not None:
        narrowed, narrowed_by = "WHERE prompt_id = ?", [wanted.prompt_id]
    values = f"SELECT unnest(list_distinct({_VALUES[wanted.field]})) AS value FROM ({matching}) {narrowed}"  # noqa: S608
    select = f"SELECT value, count(*) AS count FROM ({values}) GROUP BY value"  # noqa: S608
    return select, [*own, *parameters, *narrowed_by]


def _dictionary_key(wanted: Wanted) -> str | None:
    if wanted.field == "prompt":
        return None if wanted.prompt_id is None else str(wanted.prompt_id)
    return wanted.key or ""
