"""How the values of one field of a segment are kept, so that each comes back as the JSON value it was."""

from collections.abc import Collection, Iterable
from typing import Any, Literal

Encoding = Literal["text", "integer", "double", "boolean", "json", "messages"]
"""`messages` is `json` that is a list of chat messages and is shown as their text."""

JSON_ENCODINGS: frozenset[Encoding] = frozenset({"json", "messages"})
"""Kept as compact JSON, one text a value."""

_MIN_INT64, _MAX_INT64 = -(1 << 63), (1 << 63) - 1


def encoding_of(values: Iterable[Any]) -> Encoding:
    """Return the tightest encoding that keeps every value and its type.

    `text`: strings; `integer`: whole numbers of 64 bits; `double`: other numbers; `boolean`; `json`: compact
    JSON a value, for all else and for mixtures (1 beside 1.5 stays 1). Nulls fit each; only nulls are text.
    """
    return find_encoding(values) or "text"


def find_encoding(values: Iterable[Any]) -> Encoding | None:
    """As `encoding_of`, but None when there are only nulls."""
    held = values if isinstance(values, Collection) else list(values)
    # one pass in C over a column that may have millions of values
    kinds = set(map(type, held)) - {type(None)}
    if not kinds:
        return None
    if len(kinds) > 1:
        return "json"
    encoding = _ENCODING_OF.get(kinds.pop(), "json")
    return "json" if encoding == "integer" and not _fits(held) else encoding


def widened(before: Encoding | None, more: Encoding | None) -> Encoding | None:
    """Return the encoding that keeps values of both; None stands for only nulls."""
    if before is None or more is None:
        return before or more
    return before if before == more else "json"


_ENCODING_OF: dict[type, Encoding] = {str: "text", bool: "boolean", int: "integer", float: "double"}


def _fits(values: Iterable[int | None]) -> bool:
    whole = [value for value in values if value is not None]
    return min(whole) >= _MIN_INT64 and max(whole) <= _MAX_INT64
