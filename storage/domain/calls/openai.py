"""Calls of OpenAI's interfaces, and of all that speak them: chat completions, completions, responses."""

from collections.abc import Mapping
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

CHAT_COMPLETIONS, RESPONSES, EMBEDDINGS = "chat-completions", "responses", "embeddings"


def read_chat(kwargs: Mapping[str, Any], response: Any) -> Call:
    """Read a chat completion: each choice of the answer is a message."""
    answer = mapping(response)
    output = [_choice(choice) for choice in items(answer.get("choices"))]
    if not output and isinstance(response, str) and response:
        output = [message("assistant", response)]
    return Call(
        input=chat(
            [chat_message(one, "user") for one in items(kwargs.get("messages"))],
            tools=kwargs.get("tools"),
            tool_choice=kwargs.get("tool_choice"),
        ),
        output=chat(output),
        parameters=without(kwargs, "messages", "model", "tools", "tool_choice"),
        usage=_usage(answer),
        model=_model(kwargs, answer),
        answered_by=answered_by(answer),
        api_type=CHAT_COMPLETIONS,
    )


def read_completion(kwargs: Mapping[str, Any], response: Any) -> Call:
    answer = mapping(response)
    texts = [mapping(choice).get("text", "") for choice in items(answer.get("choices"))]
    if not texts and isinstance(response, str) and response:
        texts = [response]
    return Call(
        input=completion(kwargs.get("prompt")),
        output=completion(texts),
        parameters=without(kwargs, "prompt", "model"),
        usage=_usage(answer),
        model=_model(kwargs, answer),
        answered_by=answered_by(answer),
    )


def read_embeddings(kwargs: Mapping[str, Any], response: Any) -> Call:
    """Read a call for embeddings: texts as a completion; their vectors, which say nothing, are left out."""
    answer = mapping(response)
    return Call(
        input=completion(kwargs.get("input")),
        output=completion([]),
        parameters=without(kwargs, "input", "model"),
        usage=_usage(answer),
        model=_model(kwargs, answer),
        answered_by=answered_by(answer),
        api_type=EMBEDDINGS,
    )


def read_responses(kwargs: Mapping[str, Any], response: Any) -> Call:
    """Read a call of the responses interface, whose input is a text or a list of items."""
    answer = mapping(response)
    given = kwargs.get("input")
    asked = [message("user", given)] if isinstance(given, str) else _messages(given)
    if kwargs.get("instructions"):
        asked.insert(0, message("system", kwargs["instructions"]))
    output = [message("assistant", response)] if isinstance(response, str) and response else None
    names = ("input", "instructions", "model", "tools", "tool_choice")
    return Call(
        input=chat(asked, tools=kwargs.get("tools"), tool_choice=kwargs.get("tool_choice")),
        output=chat(_messages(answer.get("output")) if output is None else output),
        parameters=without(kwargs, *names),
        usage=_usage(answer),
        model=_model(kwargs, answer),
        answered_by=answered_by(answer),
        api_type=RESPONSES,
    )


def chat_message(given: Any, default_role: str) -> Message:
    """Read a message of a chat; keys that are not known are kept."""
    if not isinstance(given, Mapping):
        return message(default_role, given)
    role = given.get("role")
    calls = [call for call in items(given.get("tool_calls")) if isinstance(call, Mapping)]
    return message(
        role if isinstance(role, str) and role else default_role,
        given.get("content"),
        calls,
        **without(given, "role", "content", "tool_calls"),
    )


def _choice(given: Any) -> Message:
    choice = mapping(given)
    said = choice.get("message") or choice.get("delta")
    if said is None and ("role" in choice or "content" in choice):
        said = choice  # a stream that an older client put together
    return chat_message(mapping(said), "assistant")


def _usage(answer: Mapping[str, Any]) -> Usage:
    usage = mapping(answer.get("usage"))
    details = mapping(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    return Usage(
        input=count(usage.get("prompt_tokens", usage.get("input_tokens"))),
        output=count(usage.get("completion_tokens", usage.get("output_tokens"))),
        cache_read=count(details.get("cached_tokens")),
    )


def _model(kwargs: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    return as_text(kwargs.get("model") or kwargs.get("engine") or answer.get("model") or "")


def _messages(given: Any) -> list[Message]:
    """Read items of the responses interface; what the assistant did without a break is one message."""
    made: list[Message] = []
    for item in items(given):
        one = _item(item)
        last = made[-1] if made else None
        if last is not None and last["role"] == one["role"] == "assistant" and "type" in mapping(item):
            last["content"] += one["content"]
            if "tool_calls" in one:
                last["tool_calls"] = last.get("tool_calls", []) + one["tool_calls"]
        else:
            made.append(one)
    return made


def _item(given: Any) -> Message:
    item = mapping(given)
    kind = item.get("type")
    if kind == "function_call":
        call = tool_call(item.get("name"), item.get("arguments", ""), item.get("call_id"))
        return message("assistant", None, [call])
    if kind == "function_call_output":
        return message("tool", item.get("output"), tool_call_id=item.get("call_id"))
    if kind == "reasoning":
        summary = [mapping(part).get("text") for part in items(item.get("summary"))]
        thought = "\n\n".join(text for text in summary if isinstance(text, str))
        return message("assistant", {"type": "thinking", "thinking": thought, "id": item.get("id")})
    if "role" in item or kind == "message":
        return chat_message(without(item, "type", "id", "status"), "assistant")
    # a tool of the provider's own (a web search, a file search): kept as the block that it is
    return message("assistant" if item else "user", given)
