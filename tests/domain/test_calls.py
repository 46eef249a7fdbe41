"""Recorded calls of models, read into input and output; whatever the shape, a log can be made of it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.json_body import validate_value
from api.schemas.request_logs import LOG_REQUEST
from storage.domain.calls.read import provider_of, read_call
from storage.domain.calls.shapes import Usage, count
from storage.prices import price_of

LEGS = "How many legs has a spider?"


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


def test_an_openai_chat_with_tools() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "count", "arguments": '{"of": "legs"}'}}
    tools = [{"type": "function", "function": {"name": "count"}}]
    kwargs = {
        "model": "gpt-4o",
        "temperature": 0.5,
        "stop": None,
        "tools": tools,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [{"type": "text", "text": LEGS}, {"type": "image_url", "image_url": {}}],
            },
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "8"},
        ],
    }
    answer = {
        "model": "gpt-4o-2024-08-06",
        "choices": [
            {"message": {"role": "assistant", "content": "Eight.", "refusal": None}},
            {"message": {"role": "assistant", "content": None, "tool_calls": [call]}},
        ],
        "usage": {
            "prompt_tokens": 20,
            "completion_tokens": 4,
            "prompt_tokens_details": {"cached_tokens": 16},
        },
    }
    read = read_call("openai.chat.completions.create", "openai", kwargs, answer)
    assert read.input == {
        "type": "chat",
        "tools": tools,
        "messages": [
            {"role": "system", "content": text("Be brief.")},
            {"role": "user", "content": [*text(LEGS), {"type": "image_url", "image_url": {}}]},
            {"role": "assistant", "content": [], "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": text("8")},
        ],
    }
    assert read.output["messages"] == [
        {"role": "assistant", "content": text("Eight.")},
        {"role": "assistant", "content": [], "tool_calls": [call]},
    ]
    assert read.parameters == {"temperature": 0.5}
    assert read.usage == Usage(20, 4, cache_read=16)
    assert (read.model, read.answered_by, read.api_type) == (
        "gpt-4o",
        "gpt-4o-2024-08-06",
        "chat-completions",
    )


def test_the_answer_of_a_stream_that_an_older_client_put_together() -> None:
    answer = {"choices": [{"role": "assistant", "content": "Rome."}], "usage": None}
    read = read_call("openai.OpenAI.chat.completions.create", "openai", {"messages": []}, answer)
    assert read.output["messages"] == [{"role": "assistant", "content": text("Rome.")}]
    assert read.usage == Usage()


def test_an_openai_completion_and_a_failed_call() -> None:
    answer = {"choices": [{"text": "Eight."}], "usage": {"prompt_tokens": 6, "completion_tokens": 2}}
    read = read_call("openai.completions.create", "openai", {"model": "m", "prompt": LEGS}, answer)
    assert read.input == {"type": "completion", "content": text(LEGS), "input_variables": []}
    assert read.output["content"] == text("Eight.")
    failed = read_call("openai.chat.completions.create", "openai", {"messages": [{"role": "user"}]}, {})
    assert failed.output == {"type": "chat", "messages": []}


def test_openai_responses_join_what_the_assistant_did() -> None:
    kwargs = {
        "model": "o4-mini",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": LEGS}]},
            {"type": "function_call", "call_id": "c0", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c0", "output": "8"},
        ],
        "reasoning": {"effort": "low"},
    }
    answer = {
        "model": "o4-mini-2025",
        "output": [
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Spiders."}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Eight."}]},
            {"type": "function_call", "call_id": "c1", "name": "count", "arguments": '{"n": 8}'},
        ],
        "usage": {"input_tokens": 9, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 1}},
    }
    read = read_call("openai.responses.create", "openai", kwargs, answer)
    assert [one["role"] for one in read.input["messages"]] == ["system", "user", "assistant", "tool"]
    (said,) = read.output["messages"]
    assert said["content"] == [{"type": "thinking", "thinking": "Spiders.", "id": "r"}, *text("Eight.")]
    assert said["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "count", "arguments": '{"n": 8}'}}
    ]
    assert (read.usage, read.api_type) == (Usage(9, 5, cache_read=1), "responses")
    plain = read_call("openai.responses.create", "openai", {"input": LEGS}, answer)
    assert plain.input["messages"] == [{"role": "user", "content": text(LEGS)}]


def test_anthropic_messages_with_tools_and_a_cache() -> None:
    kwargs = {
        "model": "claude-sonnet-4",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {"role": "user", "content": LEGS},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t1", "name": "count", "input": {"a": 1}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "8"}]},
        ],
    }
    answer = {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "text", "text": "Eight.", "citations": None},
        ],
        "usage": {
            "input_tokens": 5,
            "output_tokens": 2,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 7,
        },
    }
    read = read_call("anthropic.messages.create", "anthropic", kwargs, answer)
    assert read.input["messages"] == [
        {"role": "system", "content": text("Be brief.")},
        {"role": "user", "content": text(LEGS)},
        {
            "role": "assistant",
            "content": [],
            "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "count", "arguments": '{"a": 1}'}}
            ],
        },
        {"role": "tool", "content": text("8"), "tool_call_id": "t1"},
    ]
    (said,) = read.output["messages"]
    assert [block["type"] for block in said["content"]] == ["thinking", "text"]
    assert read.usage == Usage(112, 2, cache_read=100, cache_write=7)
    stream = read_call("anthropic.messages.create", "anthropic", kwargs, "Eight.")
    assert stream.output["messages"] == [{"role": "assistant", "content": text("Eight.")}]
    old = read_call("anthropic.completions.create", "anthropic", {"prompt": "Hi"}, {"completion": "Ho"})
    assert (old.input["content"], old.output["content"]) == (text("Hi"), text("Ho"))


def test_other_providers_are_read_as_far_as_they_look_alike() -> None:
    google = read_call(
        "google.model.generate_content",
        "google",
        {"model": "gemini-2", "contents": [{"role": "user", "parts": [{"text": LEGS}]}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Eight."}]}}]},
    )
    assert google.input["messages"] == [{"role": "user", "content": text(LEGS)}]
    assert google.output["messages"] == [{"role": "assistant", "content": text("Eight.")}]
    bedrock = read_call(
        "boto3.bedrock-runtime.converse",
        "amazon.bedrock",
        {"modelId": "nova", "messages": [{"role": "user", "content": [{"text": LEGS}]}]},
        {
            "output": {"message": {"role": "assistant", "content": [{"text": "Eight."}]}},
            "usage": {"inputTokens": 4, "outputTokens": 2},
        },
    )
    assert bedrock.output["messages"] == [{"role": "assistant", "content": text("Eight.")}]
    assert (bedrock.model, bedrock.usage) == ("nova", Usage(4, 2))


def test_prices_come_from_a_table_and_are_0_beyond_it(caplog: pytest.LogCaptureFixture) -> None:
    usage = Usage(1000, 100)
    assert price_of("openai", "gpt-4o-mini-2024-07-18", usage) == pytest.approx(0.00021)
    assert price_of("openai.azure", "gpt-4o-mini", usage) > 0
    cached = price_of("anthropic", "claude-sonnet-4-20250514", Usage(1000, 100, cache_read=900))
    assert 0 < cached < price_of("anthropic", "claude-sonnet-4-20250514", usage)
    for _ in range(2):
        assert price_of("nobody", "no-such-model", usage) == 0
    assert caplog.text.count("no price is known") == 1
    assert price_of("openai", "gpt-4o", Usage()) == price_of("openai", "", usage) == 0


@pytest.mark.parametrize(
    ("asked", "answered_by"),
    [("our-deployment", "gpt-4o-mini"), ("gpt-4o-mini", "our-build"), ("", "gpt-4o-mini")],
)
def test_a_price_is_of_the_model_that_answered_else_of_the_one_asked(asked: str, answered_by: str) -> None:
    usage = Usage(1000, 100)
    known = price_of("openai", "gpt-4o-mini", usage)
    assert price_of("openai", asked, usage, answered_by=answered_by) == known > 0
    dear = price_of("openai", "gpt-4o-mini", usage, answered_by="gpt-4o")
    assert dear == price_of("openai", "gpt-4o", usage) > known


def test_who_provides_a_model() -> None:
    assert provider_of("openai.chat.completions.create", None) == "openai"
    assert provider_of("openai.AzureOpenAI.chat.completions.create", "openai.azure") == "openai.azure"
    assert provider_of("", None) == "unknown"
    assert [count(n) for n in (3, True, -1, 1.5, None)] == [3, 0, 0, 0, 0]


NAMES = [
    *("messages", "content", "role", "choices", "message", "delta", "tool_calls", "usage", "type", "text"),
    *("input", "output", "prompt", "system", "instructions", "candidates", "parts", "model", "summary"),
    *("tool_use", "tool_result", "function_call", "function_call_output", "reasoning", "name", "arguments"),
    *("prompt_tokens", "input_tokens_details", "cached_tokens", "tool_call_id", "contents", "tools"),
]
words = st.sampled_from([*NAMES, "assistant", "user", "", "x"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**20) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=20,
)
functions = st.sampled_from(
    [
        *("openai.chat.completions.create", "openai.completions.create", "openai.responses.create"),
        *("anthropic.messages.create", "anthropic.completions.create", "google.model.generate_content", ""),
    ]
)


@settings(max_examples=400, deadline=None)
@given(functions, st.dictionaries(words, json_values, max_size=5), json_values)
def test_whatever_the_shape_a_log_can_be_made_of_it(
    function_name: str, kwargs: dict[str, Any], answer: Any
) -> None:
    call = read_call(function_name, provider_of(function_name, None), kwargs, answer)
    validate_value(
        LOG_REQUEST,
        {
            "provider": "p",
            "model": call.model,
            "input": call.input,
            "output": call.output,
            "parameters": call.parameters,
            "request_start_time": 1,
            "request_end_time": 1,
            "input_tokens": count(call.usage.input),
            "output_tokens": call.usage.output,
        },
    )
