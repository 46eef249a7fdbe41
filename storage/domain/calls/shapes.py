"""What a recorded call says once it is read, and the parts that all readers share."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from storage.domain.prompts import MAX_INTEGER

Message = dict[str, Any]
Block = dict[str, Any]

_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a call; `input` counts all of the input, also what a cache gave or took."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a model: `input` and `output` are those of a logged request (2.1).

    `model` is the one that was asked for, `answered_by` the one that the answer names (empty: it names none).
    """

    input: dict[str, Any]
    output: dict[str, Any]
    parameters: dict[str, Any]
    usage: Usage
    model: str
    api_type: str | None = None
    answered_by: str = ""


def as_text(value: Any) -> str:
    """A value as text: a string is itself, all else its JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def text_block(value: Any) -> Block:
    return {"type": "text", "text": as_text(value)}


def blocks(content: Any) -> list[Block]:
    """Read the content of a message: text, one block, or a list of both."""
    if content is None:
        return []
    if not isinstance(content, list):
        return [_block(content)]
    return [_block(item) for item in content if item is not None]


def _block(item: Any) -> Block:
    if not isinstance(item, Mapping):
        return text_block(item)
    kind, text = item.get("type"), item.get("text")
    if isinstance(text, str) and (kind in _TEXT_TYPES or not isinstance(kind, str)):
        return {**item, "type": "text"}
    if isinstance(kind, str) and kind != "text":
        return dict(item)
    return text_block(item)


def message(role: str, content: Any, tool_calls: Iterable[Mapping[str, Any]] = (), **more: Any) -> Message:
    """One message; empty and absent parts are left out."""
    made: Message = {"role": role, "content": blocks(content)}
    calls = [dict(call) for call in tool_calls]
    if calls:
        made["tool_calls"] = calls
    return made | {name: value for name, value in more.items() if value is not None}


def tool_call(name: Any, arguments: Any, call_id: Any = None) -> dict[str, Any]:
    """One call of a tool; arguments are JSON text, as models write them."""
    made = {"type": "function", "function": {"name": as_text(name or ""), "arguments": as_text(arguments)}}
    return made if call_id is None else {"id": as_text(call_id), **made}


def chat(messages: Iterable[Message], **more: Any) -> dict[str, Any]:
    side: dict[str, Any] = {"type": "chat", "messages": list(messages)}
    return side | {name: value for name, value in more.items() if value}


def completion(content: Any) -> dict[str, Any]:
    return {"type": "completion", "content": blocks(content), "input_variables": []}


def mapping(value: Any) -> Mapping[str, Any]:
    """A value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> list[Any]:
    """A value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def count(value: Any) -> int:
    """A number of tokens; what is none counts as 0."""
    return value if type(value) is int and 0 <= value <= MAX_INTEGER else 0


def answered_by(answer: Mapping[str, Any]) -> str:
    name = answer.get("model")
    return name if isinstance(name, str) else ""


def without(kwargs: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The arguments that are parameters of the model: those not named, as far as they were given."""
    return {name: value for name, value in kwargs.items() if name not in names and value is not None}
