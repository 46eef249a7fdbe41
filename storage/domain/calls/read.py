"""Which reader a recorded call needs, told by the name of the function that was called and by its shape."""

from collections.abc import Mapping
from typing import Any

from storage.domain.calls import anthropic, openai
from storage.domain.calls.shapes import (
    Call,
    Message,
    Usage,
    answered_by,
    as_text,
    chat,
    count,
    items,
    mapping,
    message,
    without,
)

_ASKED = ("messages", "contents", "prompt", "input")


def read_call(function_name: str, provider: str, kwargs: Mapping[str, Any], response: Any) -> Call:
    """Read a call from the arguments of the function and what it returned, both as JSON values."""
    name = function_name.lower()
    if "anthropic" in provider or name.startswith("anthropic"):
        return (
            anthropic.read_completion(kwargs, response)
            if "prompt" in kwargs
            else anthropic.read_messages(kwargs, response)
        )
    if ".responses." in name:
        return openai.read_responses(kwargs, response)
    if "messages" in kwargs and ("chat" in name or "choices" in mapping(response)):
        return openai.read_chat(kwargs, response)
    if name.endswith("completions.create") and "chat" not in name:
        return openai.read_completion(kwargs, response)
    return _read_unknown(kwargs, response)


def provider_of(function_name: str, provider_type: str | None) -> str:
    """The provider as the client names it, else the first word of the function's name."""
    return provider_type or function_name.partition(".")[0] or "unknown"


def _read_unknown(kwargs: Mapping[str, Any], response: Any) -> Call:
    """Read a call of an interface that is not known: what looks like messages, and the answer's words."""
    answer = mapping(response)
    asked = next((kwargs[name] for name in _ASKED if kwargs.get(name)), None)
    system = [message("system", kwargs["system"])] if kwargs.get("system") else []
    given = asked if isinstance(asked, list) else [] if asked is None else [asked]
    usage = mapping(answer.get("usage") or answer.get("usage_metadata"))
    return Call(
        input=chat(system + [_message(one, "user") for one in given], tools=kwargs.get("tools")),
        output=chat(_answer(response)),
        parameters=without(kwargs, *_ASKED, "system", "model", "modelId", "tools"),
        usage=Usage(
            input=_first(usage, "prompt_tokens", "input_tokens", "inputTokens", "prompt_token_count"),
            output=_first(
                usage, "completion_tokens", "output_tokens", "outputTokens", "candidates_token_count"
            ),
        ),
        model=as_text(kwargs.get("model") or kwargs.get("modelId") or answer.get("model") or ""),
        answered_by=answered_by(answer),
    )


def _first(usage: Mapping[str, Any], *names: str) -> int:
    return next((count(usage[name]) for name in names if name in usage), 0)


def _message(given: Any, role: str) -> Message:
    one = mapping(given)
    if "parts" in one:
        spoken = {"model": "assistant"}.get(as_text(one.get("role")), one.get("role"))
        return openai.chat_message({"role": spoken, "content": one["parts"]}, role)
    return openai.chat_message(given, role)


def _answer(response: Any) -> list[Message]:
    answer = mapping(response)
    if items(answer.get("choices")):
        return list(openai.read_chat({}, response).output["messages"])
    candidates = items(answer.get("candidates"))
    if candidates:
        return [_message(mapping(one).get("content"), "assistant") for one in candidates]
    said = mapping(answer.get("output")).get("message")
    if said is not None:
        return [_message(said, "assistant")]
    if "role" in answer or "content" in answer:
        return [_message(without(answer, "usage", "model", "id", "type"), "assistant")]
    return [message("assistant", response)] if response else []
