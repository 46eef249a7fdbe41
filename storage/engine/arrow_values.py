"""JSON values as Arrow arrays, one encoding an array."""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from storage.domain.encodings import JSON_ENCODINGS, Encoding

_TYPES: dict[Encoding, Any] = {
    "text": pa.string(),
    "integer": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "json": pa.string(),
    "messages": pa.string(),
}


def arrow_type(encoding: Encoding) -> Any:
    """Return the Arrow type of the arrays of an encoding."""
    return _TYPES[encoding]


def arrow_array(values: Sequence[Any], encoding: Encoding) -> Any:
    """Spell JSON values in an encoding that fits each of them."""
    if encoding in JSON_ENCODINGS:
        values = [None if value is None else compact_json(value) for value in values]
    return pa.array(values, arrow_type(encoding))


def compact_json(value: Any) -> str:
    """Spell a value as it is kept in a `json` field."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
