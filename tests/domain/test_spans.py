"""Spans of models' calls in the vocabularies that are out there, as bodies of logged requests."""

import json
from typing import Any

import pytest

from api.json_body import validate_value
from api.schemas.request_logs import LOG_REQUEST
from storage.domain.calls.shapes import Usage
from storage.domain.spans.read import LONGEST_VALUE, MOST_ATTRIBUTES, SpanCall, is_call, read_span
from storage.domain.spans.span import Span, SpanEvent, nested

START = 1_767_605_400_000_000_000


def span(attributes: dict[str, Any], *events: SpanEvent, **more: Any) -> Span:
    return Span(
        **{
            "trace_id": "ab" * 16,
            "span_id": "cd" * 8,
            "parent_span_id": "",
            "name": "chat gpt-4o",
            "start_ns": START,
            "end_ns": START + 1_250_000_000,
            "attributes": attributes,
            "events": events,
            **more,
        }
    )


def read(attributes: dict[str, Any], *events: SpanEvent, **more: Any) -> SpanCall:
    given_span = span(attributes, *events, **more)
    assert is_call(given_span)
    call = read_span(given_span)
    validate_value(LOG_REQUEST, call.body)
    return call


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


CURRENT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.response.model": "gpt-4o-2024-08-06",
}
LEGS, EIGHT = "How many legs has a spider?", "Eight."
ASKED = {"role": "user", "content": text(LEGS)}
ANSWERED = {"role": "assistant", "content": text(EIGHT)}


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("on_event", [True, False])
def test_the_conventions_of_today(as_json: bool, on_event: bool) -> None:
    call_part = {"type": "tool_call", "id": "c1", "name": "count", "arguments": {"of": "legs"}}
    messages = {
        "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
        "gen_ai.input.messages": [
            {"role": "user", "parts": [{"type": "text", "content": LEGS}, {"type": "uri", "uri": "x:y"}]},
            {"role": "assistant", "parts": [call_part]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": {"n": 8}}]},
        ],
        "gen_ai.output.messages": [
            {
                "role": "assistant",
                "parts": [{"type": "reasoning", "content": "Hm."}, {"type": "text", "content": EIGHT}],
                "finish_reason": "stop",
            }
        ],
        "gen_ai.tool.definitions": [{"type": "function", "name": "count"}],
    }
    held = {name: json.dumps(value) if as_json else value for name, value in messages.items()}
    rest = {
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.stop_sequences": ["\n"],
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.conversation.id": "talk",
        "server.port": 443,
    }
    if on_event:
        event = SpanEvent("gen_ai.client.inference.operation.details", held)
        call = read(CURRENT | rest, event, resource={"service.name": "tour"}, parent_span_id="ef" * 8)
    else:
        call = read(CURRENT | rest | held, resource={"service.name": "tour"}, parent_span_id="ef" * 8)
    assert call.body["input"] == {
        "type": "chat",
        "tools": messages["gen_ai.tool.definitions"],
        "messages": [
            {"role": "system", "content": text("Be brief.")},
            {"role": "user", "content": [*text(LEGS), {"type": "uri", "uri": "x:y"}]},
            {
                "role": "assistant",
                "content": [],
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "count", "arguments": '{"of": "legs"}'},
                    }
                ],
            },
            {"role": "tool", "content": text('{"n": 8}'), "tool_call_id": "c1"},
        ],
    }
    (said,) = call.body["output"]["messages"]
    assert said["content"] == [{"type": "thinking", "thinking": "Hm."}, *text(EIGHT)]
    assert (call.body["provider"], call.body["model"]) == ("openai", "gpt-4o")
    assert (call.answered_by, call.usage) == ("gpt-4o-2024-08-06", Usage(100, 3, cache_read=60))
    assert call.body["parameters"] == {"temperature": 0.5, "stop_sequences": ["\n"]}
    assert call.body["metadata"] == {
        "gen_ai.response.model": "gpt-4o-2024-08-06",
        "gen_ai.conversation.id": "talk",
        "server.port": "443",
        "trace_id": "ab" * 16,
        "span_id": "cd" * 8,
        "parent_span_id": "ef" * 8,
        "service.name": "tour",
    }
    times = (call.body["request_start_time"], call.body["request_end_time"])
    assert times == ("2026-01-05T09:30:00Z", "2026-01-05T09:30:01.250000Z")


def test_the_events_of_before() -> None:
    old = {"gen_ai.system": "openai", "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}
    call = read(
        old | {"gen_ai.usage.prompt_tokens": 5, "gen_ai.usage.completion_tokens": 2},
        SpanEvent("gen_ai.system.message", {"gen_ai.system": "openai", "content": "Be brief."}),
        SpanEvent("gen_ai.user.message", {"gen_ai.system": "openai", "content": LEGS}),
        SpanEvent("gen_ai.tool.message", {"content": "8", "id": "c1"}),
        SpanEvent(
            "gen_ai.choice",
            {
                "index": 0,
                "finish_reason": "stop",
                "message": json.dumps({"role": "assistant", "content": EIGHT}),
            },
        ),
    )
    assert call.body["input"]["messages"] == [
        {"role": "system", "content": text("Be brief.")},
        ASKED,
        {"role": "tool", "content": text("8"), "tool_call_id": "c1"},
    ]
    assert call.body["output"]["messages"] == [ANSWERED]
    assert call.usage == Usage(5, 2)


def test_prompts_and_completions_in_attributes_and_events() -> None:
    flat = {
        "llm.request.type": "chat",
        "gen_ai.system": "OpenAI",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.prompt.10.role": "user",
        "gen_ai.prompt.10.content": LEGS,
        "gen_ai.prompt.2.role": "system",
        "gen_ai.prompt.2.content": "Be brief.",
        "gen_ai.prompt.name": "spiders",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": EIGHT,
        "gen_ai.completion.0.finish_reason": "stop",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "count",
        "gen_ai.completion.0.tool_calls.0.arguments": "{}",
    }
    call = read(flat)
    assert call.body["input"]["messages"] == [{"role": "system", "content": text("Be brief.")}, ASKED]
    assert call.body["output"]["messages"] == [
        ANSWERED
        | {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "count", "arguments": "{}"}}]}
    ]
    assert call.body["metadata"]["gen_ai.prompt.name"] == "spiders"
    plain = read(
        {"gen_ai.operation.name": "text_completion", "gen_ai.request.model": "m"},
        SpanEvent("gen_ai.content.prompt", {"gen_ai.prompt": LEGS}),
        SpanEvent("gen_ai.content.completion", {"gen_ai.completion": json.dumps([{"content": EIGHT}])}),
    )
    assert plain.body["input"] == {"type": "completion", "content": text(LEGS), "input_variables": []}
    assert plain.body["output"]["content"] == text(EIGHT)


def test_openinference() -> None:
    held = {
        "openinference.span.kind": "LLM",
        "llm.provider": "anthropic",
        "llm.model_name": "claude-sonnet-4",
        "llm.invocation_parameters": json.dumps({"model": "claude", "max_tokens": 9}),
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.contents.0.message_content.type": "text",
        "llm.input_messages.0.message.contents.0.message_content.text": LEGS,
        "llm.input_messages.0.message.contents.1.message_content.type": "image",
        "llm.input_messages.0.message.contents.1.message_content.image.image.url": "http://x/y.png",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": EIGHT,
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "count",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"a": 1}',
        "llm.tools.0.tool.json_schema": '{"name": "count"}',
        "llm.token_count.prompt": 7,
        "llm.token_count.completion": 2,
        "llm.token_count.total": 9,
        "llm.cost.total": 0.25,
        "llm.prompt_template.variables": '{"x": "y"}',
        "input.value": "what is said above",
        "output.value": "what is said above",
        "metadata": '{"customer": "ada", "n": 3}',
        "tag.tags": ["a", "b"],
        "session.id": "s1",
    }
    call = read(held)
    assert call.body["input"] == {
        "type": "chat",
        "tools": [{"name": "count"}],
        "messages": [
            {
                "role": "user",
                "content": [*text(LEGS), {"type": "image_url", "image_url": {"url": "http://x/y.png"}}],
            }
        ],
    }
    (said,) = call.body["output"]["messages"]
    assert said["tool_calls"][0]["function"] == {"name": "count", "arguments": '{"a": 1}'}
    assert (call.usage, call.price) == (Usage(7, 2), 0.25)
    assert call.body["parameters"] == {"max_tokens": 9}
    assert call.body["prompt_input_variables"] == {"x": "y"}
    assert call.body["tags"] == ["a", "b"]
    kept = {name: value for name, value in call.body["metadata"].items() if "_id" not in name}
    assert kept == {"customer": "ada", "n": "3", "session.id": "s1", "llm.token_count.total": "9"}
    bare = read({"openinference.span.kind": "LLM", "input.value": LEGS, "output.value": EIGHT})
    assert (bare.body["input"]["messages"], bare.body["output"]["messages"]) == ([ASKED], [ANSWERED])
    assert (bare.body["provider"], bare.body["model"]) == ("unknown", "unknown")


@pytest.mark.parametrize("answer", ['{"legs": 8}', "[1, 2]", "{}", '["a"]', '[{"legs": 8}]', "{not JSON"])
@pytest.mark.parametrize("told", ["output.value", "gen_ai.completion"])
def test_an_answer_that_is_json_is_kept_as_its_text(answer: str, told: str) -> None:
    call = read({"openinference.span.kind": "LLM", told: answer})
    assert call.body["output"]["messages"] == [{"role": "assistant", "content": text(answer)}]


def test_the_model_that_answered_is_kept_where_it_is_another_one() -> None:
    assert read(CURRENT).body["metadata"]["gen_ai.response.model"] == "gpt-4o-2024-08-06"
    same = read({**CURRENT, "gen_ai.response.model": "gpt-4o"})
    assert "gen_ai.response.model" not in same.body["metadata"]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, False),
        ({"http.method": "GET"}, False),
        ({"gen_ai.operation.name": "chat"}, True),
        ({"gen_ai.operation.name": "generate_content"}, True),
        ({"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "e"}, False),
        ({"gen_ai.operation.name": "execute_tool"}, False),
        ({"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "m"}, False),
        ({"openinference.span.kind": "CHAIN", "input.value": "x"}, False),
        ({"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 1}, True),
        ({"gen_ai.request.model": "m"}, False),
        ({"gen_ai.operation.name": "chat", "promptlayer.request_log.managed": True}, False),
        ({"gen_ai.operation.name": ["chat"]}, False),
        ({"openinference.span.kind": 7}, False),
    ],
)
def test_which_spans_are_calls_of_a_model(attributes: dict[str, Any], expected: bool) -> None:
    assert is_call(span(attributes)) is expected


@pytest.mark.parametrize(
    ("kind", "message", "error_type"),
    [
        ("openai.RateLimitError", "", "PROVIDER_RATE_LIMIT"),
        ("429", "", "PROVIDER_RATE_LIMIT"),
        ("", "insufficient quota", "PROVIDER_QUOTA_LIMIT"),
        ("timeout", "", "PROVIDER_TIMEOUT"),
        ("AuthenticationError", "", "PROVIDER_AUTH_ERROR"),
        ("500", "it broke", "PROVIDER_ERROR"),
        ("", "it broke", "UNKNOWN_ERROR"),
    ],
)
def test_a_failed_call_says_why(kind: str, message: str, error_type: str) -> None:
    held = CURRENT | ({"error.type": kind} if kind else {})
    body = read(held, failed=True, status_message=message).body
    assert (body["status"], body["error_type"]) == ("ERROR", error_type)
    assert body["error_message"] == (message or kind)


def test_the_words_of_an_exception_stand_in_for_a_status() -> None:
    raised = SpanEvent("exception", {"exception.type": "APITimeoutError", "exception.message": "x" * 2000})
    body = read(CURRENT, raised, failed=True).body
    assert (body["error_type"], len(body["error_message"])) == ("PROVIDER_TIMEOUT", 1024)


def test_what_goes_to_metadata_is_bounded() -> None:
    many = {f"own.{number}": "x" * 10_000 for number in range(100)} | {"k" * 1025: "v"}
    metadata = read(CURRENT | many).body["metadata"]
    assert sum(name.startswith("own.") for name in metadata) == MOST_ATTRIBUTES
    assert metadata["dropped_attributes"] == str(100 - MOST_ATTRIBUTES + 1)
    assert all(len(value) <= LONGEST_VALUE for value in metadata.values())


def test_the_prompt_that_a_client_names() -> None:
    named = {
        "promptlayer.prompt.name": "greet",
        "promptlayer.prompt.id": "3",
        "promptlayer.prompt.version": 2,
    }
    assert read(CURRENT | named).prompt == {
        "prompt_name": "greet",
        "prompt_id": 3,
        "prompt_version_number": 2,
    }
    assert read(CURRENT | {"promptlayer.prompt.version": 2}).prompt == {}


def test_a_clock_that_went_back_and_a_span_without_ids() -> None:
    body = read(CURRENT, end_ns=0).body
    assert body["request_end_time"] == body["request_start_time"]
    for lack in ({"start_ns": 0}, {"trace_id": ""}, {"span_id": ""}):
        with pytest.raises(ValueError, match="start time"):
            read_span(span(CURRENT, **lack))


def test_dotted_names_nest() -> None:
    assert nested({"0.a": 1, "10.a": 3, "2.a.b": 2}) == [{"a": 1}, {"a": {"b": 2}}, {"a": 3}]
    assert nested({"a": 1, "a.b": 2}) == {"a": {"": 1, "b": 2}}
    assert nested({"a.b": 2, "a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gen_ai.usage.input_tokens", -1),
        ("gen_ai.usage.output_tokens", "many"),
        ("gen_ai.usage.cost", "free"),
        ("llm.cost.total", -0.5),
        ("error.type", "timeout"),
        ("metadata", "[1]"),
        ("metadata", "plain"),
        ("tag.tags", "plain"),
        ("llm.invocation_parameters", "[1]"),
        ("llm.prompt_template.variables", "plain"),
        ("promptlayer.prompt.version", "x"),
        ("promptlayer.prompt.id", "x"),
        ("gen_ai.provider.name", 7),
    ],
)
def test_what_a_field_cannot_hold_stands_in_the_metadata(name: str, value: Any) -> None:
    made = read_span(span({"gen_ai.operation.name": "chat", name: value}))
    assert made.body["metadata"][name] == str(value)


@pytest.mark.parametrize("spelled", ["12", 12, 12.0, "12.0"])
def test_numbers_of_tokens_and_prices_may_be_texts(spelled: Any) -> None:
    told = {"gen_ai.usage.input_tokens": spelled, "gen_ai.usage.cost": spelled}
    made = read_span(span({"gen_ai.operation.name": "chat", **told}))
    assert (made.body["input_tokens"], made.price) == (12, 12.0)
    assert not made.body["metadata"].keys() & told.keys()
