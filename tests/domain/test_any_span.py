"""Whatever a span holds, a log can be made of it."""

import json
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from api.json_body import validate_value
from api.schemas.request_logs import LOG_REQUEST
from storage.domain.errors import Invalid
from storage.domain.spans.read import read_span
from storage.domain.spans.span import SpanEvent
from storage.engine.log_body import encode_body
from tests.domain.test_spans import span

NAMES = st.sampled_from(
    [
        *("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.prompt"),
        *(
            "gen_ai.prompt.0",
            "gen_ai.prompt.0.content",
            "gen_ai.prompt.0.tool_calls.0.name",
            "gen_ai.prompt.x",
        ),
        *(
            "gen_ai.completion",
            "gen_ai.completion.0.message",
            "gen_ai.tool.definitions",
            "gen_ai.request.model",
        ),
        *(
            "gen_ai.request.a.b",
            "gen_ai.request.a",
            "gen_ai.usage.input_tokens",
            "llm.input_messages.0.message",
        ),
        *(
            "llm.input_messages.0.message.contents.0",
            "llm.invocation_parameters",
            "llm.cost.total",
            "metadata",
        ),
        *(
            "input.value",
            "output.value",
            "tag.tags",
            "llm.tools.0.tool",
            "llm.prompts.0.prompt.text",
            "own",
            "",
        ),
        *("promptlayer.prompt.name", "promptlayer.prompt.id", "promptlayer.prompt.version", "error.type"),
    ]
)
words = st.sampled_from(
    [
        *("role", "content", "parts", "type", "text", "tool_call", "tool_call_response", "id", "message"),
        *("messages", "tool_calls", "function", "name", "arguments", "x", "[1]", "{"),
        *('{"a": "\\ud800"}', '["\\udc00"]'),
    ]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**20) | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)
held_values = json_values | json_values.map(json.dumps)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(NAMES, held_values, max_size=8), st.booleans(), st.integers(1, 2**64 - 1))
def test_whatever_a_span_holds_a_log_can_be_made_of_it(
    held: dict[str, Any], failed: bool, start_ns: int
) -> None:
    event = SpanEvent("gen_ai.choice", held)
    given_span = span({**held, "gen_ai.operation.name": "chat"}, event, failed=failed, start_ns=start_ns)
    call = read_span(given_span)
    log = validate_value(LOG_REQUEST, {**call.body, **call.prompt, "price": call.price or 0})
    with suppress(Invalid):  # a number that JSON does not have
        encode_body(log.fields())
