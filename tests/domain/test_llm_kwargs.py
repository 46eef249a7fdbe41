from typing import Any

from storage.domain.llm_kwargs import find_llm_kwargs

CHAT: dict[str, Any] = {
    "type": "chat",
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}], "input_variables": []},
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
        {
            "role": "assistant",
            "content": [],
            "tool_calls": [{"id": "c1", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "Rain"}]},
    ],
    "tools": [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}],
}
METADATA = {"model": {"provider": "openai", "name": "gpt-4o-mini", "parameters": {"temperature": 0}}}


def test_openai_gets_messages_tools_and_parameters() -> None:
    arguments = find_llm_kwargs(CHAT, METADATA)
    assert arguments is not None
    assert (arguments["model"], arguments["temperature"]) == ("gpt-4o-mini", 0)
    assert [m["role"] for m in arguments["messages"]] == ["system", "user", "assistant", "tool"]
    assert "input_variables" not in arguments["messages"][0]
    assert arguments["tools"] == CHAT["tools"]


def test_anthropic_gets_the_system_text_apart_and_tools_in_its_own_words() -> None:
    arguments = find_llm_kwargs(CHAT, METADATA, provider="anthropic", model="claude")
    assert arguments is not None
    assert arguments["system"] == "Be brief."
    assert arguments["max_tokens"] > 0
    assert [m["role"] for m in arguments["messages"]] == ["user", "assistant", "user"]
    assert arguments["messages"][1]["content"] == [
        {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}}
    ]
    assert arguments["messages"][2]["content"][0]["type"] == "tool_result"
    assert arguments["tools"] == [{"name": "weather", "description": "", "input_schema": {"type": "object"}}]


def test_a_completion_is_one_prompt_and_no_model_means_no_arguments() -> None:
    completion = {
        "type": "completion",
        "content": [{"type": "text", "text": "Say "}, {"type": "text", "text": "hi"}],
    }
    assert find_llm_kwargs(completion, None) is None
    assert find_llm_kwargs(completion, None, model="m") == {"model": "m", "prompt": "Say hi"}
