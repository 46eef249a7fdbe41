import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import InvalidConfig
from storage.domain.templates import Field, parse_template, render_template, variables_of

plain = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30)
names = st.sampled_from(["a", "_x", "question", "User Question", "top-k", "größe", "变量", "a1"])


def escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


@given(st.lists(st.tuples(plain, names)), plain, st.data())
def test_what_is_escaped_comes_back_and_what_is_a_field_is_filled(parts, tail, data) -> None:  # type: ignore[no-untyped-def]
    values = {name: data.draw(plain) for _, name in parts}
    text = "".join(escaped(literal) + "{" + name + "}" for literal, name in parts) + escaped(tail)
    template = parse_template(text)
    assert variables_of(template) == tuple(dict.fromkeys(name for _, name in parts))
    assert render_template(template, values) == "".join(lit + values[name] for lit, name in parts) + tail


@given(st.text(alphabet="{}ab.[]!: \n", max_size=12))
def test_every_text_is_either_a_template_or_refused_with_its_place(text: str) -> None:
    try:
        template = parse_template(text)
    except InvalidConfig as refused:
        place = re.search(r"line (\d+), position (\d+)", refused.message)
        assert place
        line, position = int(place[1]), int(place[2])
        assert text.split("\n")[line - 1][position - 1] in "{}"
        return
    rebuilt = "".join("{" + p.name + "}" if isinstance(p, Field) else escaped(p) for p in template)
    assert rebuilt == text


@pytest.mark.parametrize(
    ("text", "line", "position"),
    [
        ("{", 1, 1),
        ("}", 1, 1),
        ("ok\nthen {", 2, 6),
        ("{{}", 1, 3),
        ("{}", 1, 1),
        ("{ }", 1, 1),
        ("{ a}", 1, 1),
        ("{a }", 1, 1),
        ("{a  b}", 1, 1),
        ("{0}", 1, 1),
        ("a {x.__class__}", 1, 3),
        ("{x[0]}", 1, 1),
        ("{x!r}", 1, 1),
        ("{x:>10}", 1, 1),
        ("{{{x.y}}}", 1, 3),
        ('{"json": 1}', 1, 1),
        ("{a{b}}", 1, 1),
        ("{a\nb}", 1, 1),
    ],
)
def test_what_is_no_plain_name_is_refused_with_line_and_position(text: str, line: int, position: int) -> None:
    with pytest.raises(InvalidConfig, match=f"prompt: line {line}, position {position}: "):
        parse_template(text, "prompt")


def test_values_other_than_text_are_compact_json_and_missing_ones_are_empty() -> None:
    template = parse_template("{a}|{b}|{c}|{d}|{e}")
    values = {"a": {"k": [1, "é"]}, "b": True, "c": None, "d": "{a}"}
    assert render_template(template, values) == '{"k":[1,"é"]}|true||{a}|'
