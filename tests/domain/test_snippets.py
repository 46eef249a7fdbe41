"""Snippets: what counts as a reference, what a text comes to, and where it is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import DependencyCycle, InvalidConfig
from storage.domain.snippets import (
    MAX_DEPTH,
    MAX_EXPANDED_BYTES,
    MAX_SNIPPETS,
    Reference,
    Snippet,
    expand_blueprint,
    load_library,
    references_in,
)


def blueprint(text: str, language: str = "f-string") -> dict[str, Any]:
    return {
        "type": "completion",
        "template_format": language,
        "content": [{"type": "text", "text": text}],
    }


def expanded(text: str, snippets: dict[str, str], languages: dict[str, str] | None = None) -> str:
    """Expand a text; a snippet's version id is its place in the given order, from 1."""
    numbers = {name: number for number, name in enumerate(snippets, 1)}

    def find(reference: Reference) -> Snippet | None:
        name = reference.name
        if name not in snippets:
            return None
        language = (languages or {}).get(name, "f-string")
        return Snippet(numbers[name], numbers[name], str(reference), 1, snippets[name], language)

    whole = blueprint(text, (languages or {}).get("", "f-string"))
    library = load_library(whole, find)
    found: str = expand_blueprint(whole, library, name="top", version_id=0)["content"][0]["text"]
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("no marks @@ at @ all", []),
        ("@@@a/b c@@@", [Reference("a/b c")]),
        ("@@@a@@@@@@b@@@ @@@a@@@", [Reference("a"), Reference("b")]),
        ("@@@a|label:x/y@@@", [Reference("a", label="x/y")]),
        ("@@@a@label:prod@@@", [Reference("a", label="prod")]),
        ("@@@a|version_number:3@@@", [Reference("a", number=3)]),
        ("@@@a@version_number:3@@@", [Reference("a", number=3)]),
        ("@@@a|b@@@", [Reference("a|b")]),
        ("@@@a|label:@@@", [Reference("a|label:")]),
        ("@@@a|label:b|label:c@@@", [Reference("a|label:b", label="c")]),
        ("@@@@@@", []),
        ("@@@a", []),
        ("@@@a\nb@@@", []),
        ("@@@@a@@@", [Reference("a")]),
    ],
)
def test_what_stands_between_the_marks_is_a_name_and_maybe_a_pin(text: str, found: list[Reference]) -> None:
    assert list(references_in(text)) == found


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5", "٣", "9" * 400])
def test_a_version_that_is_no_number_is_refused(number: str) -> None:
    with pytest.raises(InvalidConfig, match="whole number"):
        references_in(f"@@@a|version_number:{number}@@@")


def test_snippets_of_snippets_are_put_in_place() -> None:
    found = expanded("<@@@a@@@|@@@b@@@>", {"a": "A @@@b@@@ {x}", "b": "B"})
    assert found == "<A B {x}|B>"


@pytest.mark.parametrize(
    ("snippets", "path"),
    [
        ({"a": "@@@a@@@"}, "top -> a -> a"),
        ({"a": "@@@b@@@", "b": "x @@@c@@@", "c": "@@@a@@@"}, "top -> a -> b -> c -> a"),
        ({"a": "@@@b@@@@@@b@@@", "b": "@@@a@@@"}, "top -> a -> b -> a"),
    ],
)
def test_a_circle_is_refused_with_its_path(snippets: dict[str, str], path: str) -> None:
    with pytest.raises(DependencyCycle, match=f"{path}$"):
        expanded("@@@a@@@", snippets)


def test_unknown_ones_are_named() -> None:
    with pytest.raises(InvalidConfig, match="@@@b@@@: no prompt has this name"):
        expanded("@@@a@@@", {"a": "@@@b@@@"})
    with pytest.raises(InvalidConfig, match=r"@@@c\|label:x@@@: the prompt has no such release label"):
        expanded("@@@c|label:x@@@", {})


def chain(length: int) -> dict[str, str]:
    links = {f"s{n}": f"@@@s{n + 1}@@@" for n in range(1, length)}
    return {**links, f"s{length}": "end"}


def test_depth_is_bounded_in_whatever_order_snippets_are_met() -> None:
    assert expanded("@@@s1@@@", chain(MAX_DEPTH)) == "end"
    too_deep = chain(MAX_DEPTH + 1)
    for text in ("@@@s1@@@", "@@@s5@@@@@@s1@@@", "".join(f"@@@{name}@@@" for name in reversed(too_deep))):
        with pytest.raises(InvalidConfig, match=f"{MAX_DEPTH} deep"):
            expanded(text, too_deep)


def test_the_number_of_snippets_is_bounded() -> None:
    many = {f"s{n}": "x" for n in range(MAX_SNIPPETS + 1)}
    text = "".join(f"@@@{name}@@@" for name in many)
    with pytest.raises(InvalidConfig, match="at most 100"):
        expanded(text, many)
    del many["s100"]
    assert expanded(text.removesuffix("@@@s100@@@"), many) == "x" * MAX_SNIPPETS


def test_a_billion_laughs_are_refused_before_they_are_joined() -> None:
    laughs = {f"s{n}": f"@@@s{n + 1}@@@" * 1000 for n in range(1, 9)}
    with pytest.raises(InvalidConfig, match=f"over {MAX_EXPANDED_BYTES} bytes"):
        expanded("@@@s1@@@", {**laughs, "s9": "ha"})
    with pytest.raises(InvalidConfig, match=f"over {MAX_EXPANDED_BYTES} bytes"):
        expanded("@@@a@@@" * 3, {"a": "ä" * 200_000})
    assert len(expanded("@@@a@@@" * 2, {"a": "ä" * 200_000})) == 400_000


def test_the_size_of_all_texts_counts_together() -> None:
    whole = {
        "type": "chat",
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "@@@a@@@"}, {"type": "text", "text": "@@@a@@@"}],
            }
        ],
    }
    library = {Reference("a"): Snippet(1, 1, "a", 1, "x" * 600_000, "f-string")}
    with pytest.raises(InvalidConfig, match=r"messages\.0\.content\.1\.text: with its snippets"):
        expand_blueprint(whole, library, name="top", version_id=0)


def test_languages_mix_only_where_a_text_means_the_same_in_both() -> None:
    mixed = {"": "jinja2", "a": "f-string", "b": "jinja2"}
    assert expanded("{{ x }} @@@a@@@", {"a": "plain"}, mixed) == "{{ x }} plain"
    with pytest.raises(InvalidConfig, match=r"snippet a is written in f-string, and the text .* in jinja2"):
        expanded("{{ x }} @@@a@@@", {"a": "{y}"}, mixed)
    with pytest.raises(InvalidConfig, match="snippet b is written in jinja2"):
        expanded("@@@a@@@", {"a": "@@@b@@@", "b": "{{ y }}"}, mixed | {"": "f-string"})


names = st.sampled_from(["a", "b", "c", "d", "e"])
pieces = st.lists(
    st.one_of(names.map(lambda name: f"@@@{name}@@@"), st.sampled_from(["x", "{v}", " "])), max_size=4
)


@given(st.dictionaries(names, pieces.map("".join), min_size=5, max_size=5), pieces.map("".join))
def test_an_expansion_is_what_replacing_again_and_again_comes_to(snippets: dict[str, str], text: str) -> None:
    def naive(text: str, depth: int) -> str | None:
        if "@@@" not in text:
            return text
        if depth > len(snippets):
            return None
        for name, inner in snippets.items():
            text = text.replace(f"@@@{name}@@@", inner.replace("@@@", "\0"))
        return naive(text.replace("\0", "@@@"), depth + 1)

    wanted = naive(text, 0)
    try:
        found = expanded(text, snippets)
    except DependencyCycle:
        found = None
    assert found == wanted
