"""Messages as traces carry them, in the shapes of both vocabularies, as messages of a blueprint."""

from collections.abc import Mapping
from typing import Any

from storage.domain.calls.openai import chat_message
from storage.domain.calls.shapes import (
    Block,
    Message,
    items,
    mapping,
    message,
    text_block,
    tool_call,
    without,
)
from storage.domain.spans.span import from_text

_ROLES = {"model": "assistant", "ai": "assistant", "human": "user", "developer": "system"}
# What makes an object a message, or a list of messages: it has one of these.
_SAYING = frozenset(
    {"role", "content", "contents", "parts", "message", "messages", "tool_calls", "function_call"}
)


def read_messages(given: Any, role: str) -> list[Message]:
    """Read messages: a list of them, one, or a text that stands for one of `role`."""
    said = from_text(given)
    if said is None:
        return []
    if isinstance(given, str) and not _are_messages(said):
        # an answer that is JSON is a text like any other
        return [message(role, given)] if given else []
    if isinstance(said, Mapping) and isinstance(said.get("messages"), list):
        said = said["messages"]
    made: list[Message] = []
    for one in said if isinstance(said, list) else [said]:
        made += read_message(one, role)
    return made


def _are_messages(said: Any) -> bool:
    some = said if isinstance(said, list) else [said]
    return all(isinstance(one, Mapping) and not _SAYING.isdisjoint(one) for one in some)


def read_message(given: Any, role: str) -> list[Message]:
    """Read one message; results of tools in it are messages of their own."""
    said = mapping(from_text(given))
    if "message" in said:  # OpenInference, and choices of old
        inner = from_text(said["message"])
        return read_message(inner if isinstance(inner, Mapping) else {"content": inner}, role)
    if isinstance(said.get("parts"), list):
        return _of_parts(said, role)
    if not said:
        return [message(role, given)] if given else []
    content = from_text(said.get("content"))
    if isinstance(said.get("contents"), list):
        content = [_openinference_block(part) for part in said["contents"]]
    elif not (isinstance(content, list) and all("type" in mapping(part) for part in content)):
        content = said.get("content")
    calls = [_tool_call(call) for call in items(from_text(said.get("tool_calls")))]
    kept = without(said, "content", "contents", "tool_calls", "role", "finish_reason", "index", "id")
    if said.get("id") is not None and _role(said, role) == "tool":
        kept.setdefault("tool_call_id", said["id"])
    return [chat_message({**kept, "role": _role(said, role), "content": content, "tool_calls": calls}, role)]


def read_parts(given: Any, role: str) -> list[Message]:
    """Read parts without a message around them, such as instructions of the system."""
    parts = from_text(given)
    if parts is None:
        return []
    return _of_parts({"parts": parts if isinstance(parts, list) else [parts]}, role)


def _role(said: Mapping[str, Any], default: str) -> str:
    role = said.get("role")
    if not isinstance(role, str) or not role:
        return default
    return _ROLES.get(role, role)


def _of_parts(said: Mapping[str, Any], role: str) -> list[Message]:
    content: list[Any] = []
    calls: list[dict[str, Any]] = []
    results: list[Message] = []
    for given in said["parts"]:
        part = mapping(given)
        kind = part.get("type")
        if kind == "tool_call":
            calls.append(tool_call(part.get("name"), part.get("arguments", {}), part.get("id")))
        elif kind == "tool_call_response":
            result = part.get("response", part.get("result"))
            results.append(message("tool", _result(result), tool_call_id=part.get("id")))
        else:
            content.append(_part(given))
    if results and not content and not calls:
        return results
    name = said.get("name")
    return [*results, message(_role(said, role), content, calls, name=name or None)]


def _result(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else text_block(value)


def _part(given: Any) -> Block | str:
    part = mapping(given)
    kind, content = part.get("type"), part.get("content")
    if kind == "reasoning":
        return {"type": "thinking", "thinking": content if isinstance(content, str) else ""}
    if content is not None and kind in ("text", None):  # it may be anything
        return text_block(content)
    return dict(part) if part else text_block(given)


def _tool_call(given: Any) -> dict[str, Any]:
    call = mapping(mapping(given).get("tool_call") or given)
    function = mapping(from_text(call.get("function")))
    name = function.get("name", call.get("name"))
    arguments = function.get("arguments", call.get("arguments", {}))
    return tool_call(name, arguments, call.get("id"))


def _openinference_block(given: Any) -> Any:
    part = mapping(mapping(given).get("message_content") or given)
    if part.get("type") == "image":
        url = mapping(mapping(mapping(part.get("image")).get("image"))).get("url")
        return {"type": "image_url", "image_url": {"url": url}}
    return dict(part) if part else given
