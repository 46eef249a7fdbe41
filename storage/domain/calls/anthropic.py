"""Calls of Anthropic's interface: messages, and the completions of old."""

from collections.abc import Mapping, Sequence
from typing import Any

from storage.domain.calls.shapes import (
    Call,
    Message,
    Usage,
    answered_by,
    as_text,
    chat,
    completion,
    count,
    items,
    mapping,
    message,
    tool_call,
    without,
)


def read_messages(kwargs: Mapping[str, Any], response: Any) -> Call:
    """Read a call of the messages interface; tools that were used become `tool_calls`."""
    answer = mapping(response)
    asked = [message("system", kwargs["system"])] if kwargs.get("system") else []
    for one in items(kwargs.get("messages")):
        asked += _messages(one)
    content = response if isinstance(response, str) else answer.get("content")
    output = _messages({"role": answer.get("role") or "assistant", "content": content}) if content else []
    names = ("messages", "system", "model", "tools", "tool_choice")
    return Call(
        input=chat(asked, tools=kwargs.get("tools"), tool_choice=kwargs.get("tool_choice")),
        output=chat(output),
        parameters=without(kwargs, *names),
        usage=_usage(answer),
        model=as_text(kwargs.get("model") or answer.get("model") or ""),
        answered_by=answered_by(answer),
    )


def read_completion(kwargs: Mapping[str, Any], response: Any) -> Call:
    answer = mapping(response)
    return Call(
        input=completion(kwargs.get("prompt")),
        output=completion(response if isinstance(response, str) else answer.get("completion")),
        parameters=without(kwargs, "prompt", "model"),
        usage=_usage(answer),
        model=as_text(kwargs.get("model") or answer.get("model") or ""),
        answered_by=answered_by(answer),
    )


def _messages(given: Any) -> list[Message]:
    """Read one message: results of tools in it are messages of their own, which come first."""
    one = mapping(given)
    role = one.get("role")
    content = one.get("content") if one else given
    parts = content if isinstance(content, list) else [content]
    results = _of_type(parts, "tool_result")
    used = _of_type(parts, "tool_use")
    rest = [part for part in parts if mapping(part).get("type") not in ("tool_result", "tool_use")]
    made = [message("tool", part.get("content"), tool_call_id=part.get("tool_use_id")) for part in results]
    calls = [tool_call(part.get("name"), part.get("input", {}), part.get("id")) for part in used]
    if calls or not results or any(part is not None for part in rest):
        made.append(message(role if isinstance(role, str) and role else "user", rest, calls))
    return made


def _of_type(parts: Sequence[Any], kind: str) -> list[Mapping[str, Any]]:
    return [part for part in map(mapping, parts) if part.get("type") == kind]


def _usage(answer: Mapping[str, Any]) -> Usage:
    usage = mapping(answer.get("usage"))
    read, written = (
        count(usage.get(name)) for name in ("cache_read_input_tokens", "cache_creation_input_tokens")
    )
    return Usage(
        input=count(usage.get("input_tokens")) + read + written,
        output=count(usage.get("output_tokens")),
        cache_read=read,
        cache_write=written,
    )
