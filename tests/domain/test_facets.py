"""What is known of an answer beyond its text, and which words a text has."""

from typing import Any

import pytest

from storage.domain.facets import MOST_KEY_CHARS, MOST_VALUES, Facets, facets_of
from storage.domain.words import fold, holds_words, query_words, words_of
from tests.logs import chat


def answer(*, text: str | None = None, **message: Any) -> dict[str, Any]:
    content = [] if text is None else [{"type": "text", "text": text}]
    return {"type": "chat", "messages": [{"role": "assistant", "content": content, **message}]}


def call(name: str, arguments: str) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_json_object_is_flattened_without_indices() -> None:
    text = '{"a": {"b": [1, {"c": "x"}, [2.0]]}, "d": null, "e": [], "f": true, "a.b": "1"}'
    assert facets_of(answer(text=text)) == Facets(
        is_json=True,
        values=(("a.b", "1"), ("a.b.c", "x"), ("a.b", "2"), ("d", None), ("e", None), ("f", "true")),
    )


@pytest.mark.parametrize(
    "text", ["[1]", "42", "{", '{"a": NaN}', "x {}", '{"a": "\\ud800"}', '{"a":' * 5_000 + "1"]
)
def test_what_is_no_json_object_is_plain(text: str) -> None:
    assert facets_of(chat("assistant", text)) == Facets()


def test_tool_calls_are_named_and_flattened() -> None:
    found = facets_of(answer(tool_calls=[call("weather", '{"city": "Oslo"}'), call("time", "now")]))
    assert (found.is_json, found.is_tool_call, found.tool_names) == (False, True, ("weather", "time"))
    assert ("tool_calls.function.arguments.city", "Oslo") in found.values
    assert ("tool_calls.function.arguments", "now") in found.values
    block = {"type": "tool_use", "id": "t", "name": "weather", "input": {"city": "Oslo"}}
    found = facets_of({"type": "completion", "content": [block]})
    assert found.tool_names == ("weather",)
    assert ("tool_calls.input.city", "Oslo") in found.values
    old = facets_of(answer(function_call={"name": "weather", "arguments": "{}"}))
    assert old.tool_names == ("weather",)


def test_an_answer_without_end_does_not_become_values_without_end() -> None:
    many = facets_of(chat("assistant", "{" + ", ".join(f'"k{n}": {n}' for n in range(5_000)) + "}"))
    assert len(many.values) == MOST_VALUES
    key = "k" * 500
    deep = facets_of(chat("assistant", f'{{"{key}": ' * 100 + "1" + "}" * 100))
    assert all(len(name) <= MOST_KEY_CHARS for name, _ in deep.values)


def test_words_are_runs_of_letters_and_digits_in_any_case() -> None:
    assert words_of("Don't_stop: v2 STRASSE, Ǆ!") == ["don", "t", "stop", "v2", "strasse", "ǆ"]
    assert words_of("ΟΔΟΣ") == words_of("οδος")
    assert query_words("cat CATS dog") == ("cats", "dog")
    assert query_words("?!") == ()
    assert holds_words(("ca", "dog"), "a cat", "Dogs")
    assert not holds_words(("at",), "a cat", "")


def test_folding_keeps_lengths() -> None:
    assert all(len(fold(char)) == 1 for char in map(chr, range(0x20, 0x3000)))
