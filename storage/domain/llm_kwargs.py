"""The arguments of a provider's own client for a rendered blueprint."""

import json
from collections.abc import Mapping
from typing import Any

from storage.domain.blueprints import CHAT, Blueprint, text_of_blocks

_ANTHROPIC = "anthropic"
_DEFAULT_MAX_TOKENS = 4096  # anthropic refuses calls without it
_MESSAGE_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id", "function_call")


def find_llm_kwargs(
    blueprint: Blueprint,
    metadata: Mapping[str, Any] | None,
    *,
    provider: str | None = None,
    model: str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> dict[str, Any] | None:
    """Spell a rendered blueprint as a provider takes it; None when no model is named anywhere.

    `provider`, `model` and `overrides` of parameters win over the template's own metadata. Every provider
    but anthropic is spoken to in the words of OpenAI, as compatible endpoints are.
    """
    own = (metadata or {}).get("model") or {}
    named = model or own.get("name")
    if not named:
        return None
    arguments: dict[str, Any] = {"model": named, **(own.get("parameters") or {}), **(overrides or {})}
    # whose limits and prices hold is not a parameter's to say
    arguments["model"] = named
    if (provider or own.get("provider")) == _ANTHROPIC:
        return {"max_tokens": _DEFAULT_MAX_TOKENS, **arguments, **_anthropic(blueprint)}
    return {**arguments, **_openai(blueprint)}


def _openai(blueprint: Blueprint) -> dict[str, Any]:
    if blueprint["type"] != CHAT:
        return {"prompt": text_of_blocks(blueprint["content"])}
    messages = [
        {key: message[key] for key in _MESSAGE_KEYS if message.get(key) is not None}
        for message in blueprint["messages"]
    ]
    extras = ("tools", "tool_choice", "functions", "function_call")
    return {"messages": messages, **{key: blueprint[key] for key in extras if blueprint.get(key)}}


def _anthropic(blueprint: Blueprint) -> dict[str, Any]:
    if blueprint["type"] != CHAT:
        return {"messages": [{"role": "user", "content": blueprint["content"]}]}
    spoken = [m for m in blueprint["messages"] if m.get("role") != "system"]
    system = [text_of_blocks(m.get("content")) for m in blueprint["messages"] if m.get("role") == "system"]
    arguments: dict[str, Any] = {"messages": [_anthropic_message(message) for message in spoken]}
    if system:
        arguments["system"] = "\n\n".join(system)
    if blueprint.get("tools"):
        arguments["tools"] = [_anthropic_tool(tool) for tool in blueprint["tools"]]
    return arguments


def _anthropic_message(message: Mapping[str, Any]) -> dict[str, Any]:
    content = list(message.get("content") or [])
    if message.get("role") == "tool":
        result = {"type": "tool_result", "tool_use_id": message.get("tool_call_id"), "content": content}
        return {"role": "user", "content": [result]}
    content += [_tool_use(call) for call in message.get("tool_calls") or []]
    return {"role": message.get("role"), "content": content}


def _tool_use(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    return {
        "type": "tool_use",
        "id": call.get("id"),
        "name": function.get("name"),
        "input": _arguments(function.get("arguments")),
    }


def _arguments(given: Any) -> Any:
    """Arguments of a call arrive as JSON text; what is no JSON is passed on under one name."""
    if not isinstance(given, str):
        return given or {}
    try:
        return json.loads(given or "{}")
    except ValueError:
        return {"arguments": given}


def _anthropic_tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    function = tool.get("function")
    if not function:
        return tool
    return {
        "name": function.get("name"),
        "description": function.get("description", ""),
        "input_schema": function.get("parameters") or {"type": "object", "properties": {}},
    }
