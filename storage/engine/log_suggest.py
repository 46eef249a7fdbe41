"""Values that logs have, the most frequent first: from the dictionaries of files, the rest counted anew."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from storage.engine.filter_sql import as_pattern
from storage.engine.log_search import LogSearch
from storage.engine.log_sql import quoted
from storage.engine.log_values import MOST_CHARS


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

    Frequency counts logs. Empty values and those of more than 256 characters are no suggestions.
    """
    known, rest = ([], None) if scoped else search.dictionaries()
    counted, parameters = _from_logs(search, wanted, rest)
    sources = [counted]
    if known:
        files = ", ".join(quoted(path) for path in known)
        key, keys = _dictionary_key(wanted)
        sources.append(f"SELECT value, count FROM read_parquet([{files}]) WHERE field = ?{key}")  # noqa: S608
        parameters += [wanted.field, *keys]
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


def _from_logs(search: LogSearch, wanted: Wanted, rest: Any) -> tuple[str, list[Any]]:
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


def _dictionary_key(wanted: Wanted) -> tuple[str, list[str]]:
    if wanted.field == "prompt":
        return ("", []) if wanted.prompt_id is None else (" AND key = ?", [str(wanted.prompt_id)])
    return " AND key = ?", [wanted.key or ""]
