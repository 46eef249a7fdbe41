"""How the values of one field of a segment are kept, so that each comes back as the JSON value it was."""

from collections.abc import Iterable
from typing import Any, Literal, get_args

Encoding = Literal["text", "integer", "double", "boolean", "json"]
ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)

_MIN_INT64, _MAX_INT64 = -(1 << 63), (1 << 63) - 1


def encoding_of(values: Iterable[Any]) -> Encoding:
    """Return the tightest encoding that keeps every value and its type.

    `text`: strings; `integer`: whole numbers of 64 bits; `double`: other numbers; `boolean`; `json`: compact
    JSON a value, for all else and for mixtures (1 beside 1.5 stays 1). Nulls fit each; only nulls are text.
    """
    kinds = {_kind(value) for value in values if value is not None}
    if not kinds:
        return "text"
    return kinds.pop() if len(kinds) == 1 else "json"


def _kind(value: Any) -> Encoding:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if _MIN_INT64 <= value <= _MAX_INT64 else "json"
    if isinstance(value, float):
        return "double"
    return "json"
