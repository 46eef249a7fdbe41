"""A span of a model's call as the body of a logged request (2.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage.domain.calls.shapes import (
    Message,
    Usage,
    as_text,
    blocks,
    chat,
    completion,
    count,
    items,
    mapping,
)
from storage.domain.prompts import MAX_INTEGER
from storage.domain.request_logs import MAX_ERROR_MESSAGE_CHARS, MAX_METADATA_KEY_CHARS, MAX_TAG_CHARS, iso_us
from storage.domain.spans.messages import read_messages, read_parts
from storage.domain.spans.span import Attributes, Span, SpanEvent, from_text

MOST_ATTRIBUTES = 64
LONGEST_VALUE = 4096
_CALLS = frozenset({"chat", "completion", "text_completion", "generate_content", "message", "responses"})
_COMPLETIONS = frozenset({"completion", "text_completion"})
_DETAILS = "gen_ai.client.inference.operation.details"
_ROLE_OF_EVENT = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_FAILURES = (
    ("PROVIDER_RATE_LIMIT", ("ratelimit", "rate_limit", "rate limit", "429")),
    ("PROVIDER_QUOTA_LIMIT", ("quota", "402")),
    ("PROVIDER_TIMEOUT", ("timeout", "timed out", "deadline")),
    ("PROVIDER_AUTH_ERROR", ("authentication", "unauthorized", "permission", "401", "403")),
)


@dataclass(frozen=True, slots=True)
class SpanCall:
    """A call of a model: the span's name in the world, the body of E1, what its price depends on.

    `price` is what the span says (None: nothing); `prompt` are the fields of E1 that link to a prompt.
    """

    span: str
    body: dict[str, Any]
    usage: Usage
    answered_by: str
    price: float | None
    prompt: dict[str, Any]


def is_call(span: Span) -> bool:
    """Say whether a span records one call of a model, which no other log records as well."""
    held = span.attributes
    if held.get("promptlayer.request_log.managed") is True:  # its client logs it by itself
        return False
    kind = held.get("openinference.span.kind")
    if kind is not None:
        return bool(kind == "LLM")
    operation = held.get("gen_ai.operation.name", held.get("llm.request.type"))
    if operation is not None:
        return isinstance(operation, str) and operation in _CALLS
    if "gen_ai.request.model" not in held and "gen_ai.response.model" not in held:
        return False
    return any(name.startswith(("gen_ai.usage.", "gen_ai.prompt", "gen_ai.input.")) for name in held)


def read_span(span: Span) -> SpanCall:
    """Read a span of which `is_call` is true.

    Raises:
        ValueError: it lacks its ids or its time of start.
    """
    if not (span.trace_id and span.span_id and span.start_ns):
        raise ValueError("a span has no trace id, no span id or no start time")
    held = Attributes(_with_details(span))
    operation = held.text("gen_ai.operation.name", "llm.request.type")
    held.get("openinference.span.kind")
    asked, answered = _asked(held, span.events), _answered(held, span.events)
    tools = held.json("gen_ai.tool.definitions") or _openinference_tools(held)
    usage = _usage(held)
    requested = held.text("gen_ai.request.model", "llm.model_name")
    answered_by = held.text("gen_ai.response.model") or ""
    model = requested or answered_by or "unknown"
    start_us = span.start_ns // 1000
    plain = operation in _COMPLETIONS
    body = {
        "provider": held.text(
            "promptlayer.provider.type", "gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"
        )
        or "unknown",
        "model": model,
        "input": completion(_content(asked)) if plain else chat(asked, tools=tools),
        "output": completion(_content(answered)) if plain else chat(answered),
        "request_start_time": iso_us(start_us),
        "request_end_time": iso_us(max(start_us, span.end_ns // 1000)),
        "parameters": _parameters(held),
        "tags": [as_text(tag)[:MAX_TAG_CHARS] for tag in held.items("tag.tags")],
        "prompt_input_variables": dict(held.mapping("llm.prompt_template.variables")),
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "function_name": span.name,
        "api_type": held.text("promptlayer.api.type"),
        **_outcome(span, held),
    }
    price, prompt = held.read(_amount, "llm.cost.total", "gen_ai.usage.cost"), _prompt(held)
    # a name that stands for another one: an alias, or a deployment
    other = {"gen_ai.response.model": answered_by} if answered_by not in {"", model} else {}
    body["metadata"] = _metadata(span, held, other)
    name = f"span {span.trace_id} {span.span_id}"
    return SpanCall(name, body, usage, answered_by, price, prompt)


def _with_details(span: Span) -> dict[str, Any]:
    """Attributes of a span and of the event that says what a span of its own may not."""
    details = [event.attributes for event in span.events if event.name == _DETAILS]
    return {name: value for held in (*details, span.attributes) for name, value in held.items()}


def _asked(held: Attributes, events: Sequence[SpanEvent]) -> list[Message]:
    system = read_parts(held.get("gen_ai.system_instructions"), "system")
    held.get("input.mime_type")
    # one call may be told in several of these: the first that says anything counts, all are taken
    told = [
        read_messages(held.get("gen_ai.input.messages"), "user"),
        read_messages(held.listed("gen_ai.prompt"), "user"),
        read_messages(held.get("gen_ai.prompt"), "user"),
        read_messages(held.listed("llm.input_messages"), "user"),
        _of_events(events),
        _prompts(held.listed("llm.prompts"), "prompt", "user"),
        read_messages(held.get("input.value"), "user"),
    ]
    return system + next(filter(None, told), [])


def _answered(held: Attributes, events: Sequence[SpanEvent]) -> list[Message]:
    held.get("output.mime_type")
    told = [
        read_messages(held.get("gen_ai.output.messages"), "assistant"),
        read_messages(held.listed("gen_ai.completion"), "assistant"),
        read_messages(held.get("gen_ai.completion"), "assistant"),
        read_messages(held.listed("llm.output_messages"), "assistant"),
        _choices(events),
        _prompts(held.listed("llm.choices"), "completion", "assistant"),
        read_messages(held.get("output.value"), "assistant"),
    ]
    return next(filter(None, told), [])


def _of_events(events: Sequence[SpanEvent]) -> list[Message]:
    made: list[Message] = []
    for event in events:
        if event.name in _ROLE_OF_EVENT:
            said = {name: value for name, value in event.attributes.items() if not name.startswith("gen_ai.")}
            made += read_messages([said] if said else None, _ROLE_OF_EVENT[event.name])
        elif event.name == "gen_ai.content.prompt":
            made += read_messages(event.attributes.get("gen_ai.prompt"), "user")
    return made


def _choices(events: Sequence[SpanEvent]) -> list[Message]:
    made: list[Message] = []
    for event in events:
        if event.name == "gen_ai.choice":
            said = {name: value for name, value in event.attributes.items() if not name.startswith("gen_ai.")}
            made += read_messages([said] if said else None, "assistant")
        elif event.name == "gen_ai.content.completion":
            made += read_messages(event.attributes.get("gen_ai.completion"), "assistant")
    return made


def _prompts(given: Any, name: str, role: str) -> list[Message]:
    texts = [mapping(mapping(one).get(name)).get("text") for one in items(given)]
    return [{"role": role, "content": blocks(text)} for text in texts if isinstance(text, str)]


def _content(messages: list[Message]) -> list[Any]:
    return [block for one in messages for block in one["content"]]


def _openinference_tools(held: Attributes) -> list[Any]:
    found = [mapping(mapping(one).get("tool")).get("json_schema") for one in held.listed("llm.tools")]
    return [from_text(tool) for tool in found if tool is not None]


def _parameters(held: Attributes) -> dict[str, Any]:
    found = dict(held.mapping("llm.invocation_parameters"))
    for prefix in ("gen_ai.request", "gen_ai.openai.request"):
        found |= held.tree(prefix)
    return {name: value for name, value in found.items() if name not in {"model", "messages"}}


def _usage(held: Attributes) -> Usage:
    def tokens(*names: str) -> int:
        return held.read(_tokens, *names) or 0

    return Usage(
        input=tokens(
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.prompt_tokens",
            "llm.usage.prompt_tokens",
            "llm.token_count.prompt",
        ),
        output=tokens(
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
            "llm.usage.completion_tokens",
            "llm.token_count.completion",
        ),
        cache_read=tokens(
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "llm.token_count.prompt_details.cache_read",
        ),
        cache_write=tokens(
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_write.input_tokens",
            "gen_ai.usage.cache_creation_input_tokens",
            "llm.token_count.prompt_details.cache_write",
        ),
    )


def _amount(value: Any) -> float | None:
    """A number, also one in a text, that is neither negative nor infinite; None: it is none."""
    try:
        number = float(value) if type(value) in (int, float, str) else -1.0
    except (ValueError, OverflowError):
        return None
    return number if 0 <= number < float("inf") else None


def _tokens(value: Any) -> int | None:
    if type(value) is int:
        return value if 0 <= value <= MAX_INTEGER else None
    number = _amount(value)
    return int(number) if number is not None and number.is_integer() and number <= MAX_INTEGER else None


def _outcome(span: Span, held: Attributes) -> dict[str, Any]:
    if not span.failed:
        return {"status": "SUCCESS"}
    kind = held.text("error.type") or ""
    raised = next((event.attributes for event in span.events if event.name == "exception"), {})
    said = span.status_message or as_text(raised.get("exception.message") or "")
    words = " ".join((kind, as_text(raised.get("exception.type") or ""), said)).lower()
    found = (name for name, signs in _FAILURES if any(sign in words for sign in signs))
    error_type = next(found, "PROVIDER_ERROR" if kind else "UNKNOWN_ERROR")
    message = said[:MAX_ERROR_MESSAGE_CHARS] or kind[:MAX_ERROR_MESSAGE_CHARS] or None
    return {"status": "ERROR", "error_type": error_type, "error_message": message}


def _prompt(held: Attributes) -> dict[str, Any]:
    link = {
        "prompt_name": held.text("promptlayer.prompt.name"),
        "prompt_id": held.read(_whole, "promptlayer.prompt.id"),
    }
    named = {key: value for key, value in link.items() if value is not None}
    number = held.read(_whole, "promptlayer.prompt.version") if named else None
    return named | {"prompt_version_number": number} if number else named


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:20])
    return count(value) or None


def _metadata(span: Span, held: Attributes, model: dict[str, str]) -> dict[str, str]:
    """Say what the span's own words were: who it is, its service, and what no other field holds."""
    own = held.mapping("metadata")
    ids = {"trace_id": span.trace_id, "span_id": span.span_id, "parent_span_id": span.parent_span_id}
    service = {"service.name": span.resource.get("service.name")}
    said = [*own.items(), *held.rest()]
    kept: dict[str, str] = {}
    dropped = 0
    for name, value in said:
        if len(kept) == MOST_ATTRIBUTES or len(name) > MAX_METADATA_KEY_CHARS:
            dropped += 1
        elif value is not None:
            kept[name] = _cut(as_text(value))
    kept |= {name: _cut(as_text(value)) for name, value in (ids | service | model).items() if value}
    return kept | ({"dropped_attributes": str(dropped)} if dropped else {})


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def prompt_as_metadata(prompt: Mapping[str, Any]) -> dict[str, str]:
    """How a link to a prompt that is not of this workspace is kept."""
    return {f"promptlayer.{name.replace('_', '.', 1)}": as_text(value) for name, value in prompt.items()}
