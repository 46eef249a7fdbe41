"""What search knows of an answer beyond its text: is it JSON, does it call tools, which values does it hold.

A JSON object is flattened to dotted keys: `{"a": {"b": [1, 2]}}` holds the values 1 and 2 under `a.b`.
Tool calls are flattened alike under `tool_calls`, their arguments read as JSON where they are an object.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage.domain.filter_values import spell, spell_float
from storage.domain.transcripts import messages_of, output_text

MOST_VALUES = 1_000
MOST_KEY_CHARS = 1_024
TOOL_CALLS = "tool_calls"
_WHITESPACE = " \t\r\n"
_CALL_BLOCKS = frozenset({"tool_use", "tool_call", "function_call"})

Pair = tuple[str, str | None]
"""A dotted key and a value under it as text; None is JSON's null, or an empty list or object."""


@dataclass(frozen=True, slots=True)
class Facets:
    """Facts of one answer; of its values the first 1,000 count, under keys of at most 1,024 characters."""

    is_json: bool = False
    is_tool_call: bool = False
    tool_names: tuple[str, ...] = ()
    values: tuple[Pair, ...] = ()


PLAIN = Facets()


def facets_of(output: Mapping[str, Any]) -> Facets:
    """Return the facts of an answer, the `output` of a log."""
    calls = list(_tool_calls(output))
    whole = _object_in(output_text(output))
    if whole is None and not calls:
        return PLAIN
    pairs: list[Pair] = []
    if whole is not None:
        _flatten(whole, "", pairs)
    if calls:
        _flatten(calls, TOOL_CALLS, pairs)
    names = (_name_of(call) for call in calls)
    return Facets(
        is_json=whole is not None,
        is_tool_call=bool(calls),
        tool_names=tuple(dict.fromkeys(name for name in names if name is not None)),
        values=tuple(dict.fromkeys(pairs)),
    )


def keys_of(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """The keys of flattened values, each once."""
    return tuple(dict.fromkeys(key for key, _ in pairs))


def variable_values(variables: Mapping[str, Any]) -> tuple[Pair, ...]:
    """Return input variables by name: a text as it is, other values as compact JSON, None for null."""
    return tuple((name, _variable(value)) for name, value in variables.items())


def _variable(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        return spell_float(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _tool_calls(output: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for message in messages_of(output):
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, Mapping):
                yield _opened_call(call)
        call = message.get("function_call")
        if isinstance(call, Mapping):
            yield _opened_call({"type": "function", "function": call})
        for block in message.get("content") or ():
            if block.get("type") in _CALL_BLOCKS:
                yield block


def _opened_call(call: Mapping[str, Any]) -> Mapping[str, Any]:
    function = call.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("arguments"), str):
        return call
    arguments = _object_in(function["arguments"])
    return call if arguments is None else {**call, "function": {**function, "arguments": arguments}}


def _name_of(call: Mapping[str, Any]) -> str | None:
    function = call.get("function")
    name = function.get("name") if isinstance(function, Mapping) else call.get("name")
    return name if isinstance(name, str) else None


def _object_in(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, if it is one that can be given back."""
    stripped = text.strip(_WHITESPACE)
    if not (stripped.startswith("{") and stripped.endswith("}")):
        return None
    try:
        found = json.loads(stripped, parse_constant=_refuse)
        if "\\u" in stripped:  # halves of surrogate pairs, which JSON can spell, are no text
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _flatten(value: Any, key: str, pairs: list[Pair]) -> None:
    """Append the leaves of a JSON value in order, until there are enough."""
    left: list[tuple[str, Any]] = [(key, value)]
    while left and len(pairs) < MOST_VALUES:
        key, value = left.pop()
        if isinstance(value, Mapping) and value:
            below = [(f"{key}.{name}" if key else name, child) for name, child in value.items()]
            left.extend(pair for pair in reversed(below) if len(pair[0]) <= MOST_KEY_CHARS)
        elif isinstance(value, list) and value:
            left.extend((key, child) for child in reversed(value))
        else:
            pairs.append((key, _leaf(value)))


def _leaf(value: Any) -> str | None:
    return spell(value) if isinstance(value, str | int | float) else None
