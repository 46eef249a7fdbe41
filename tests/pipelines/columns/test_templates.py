"""Templates over rows say what they say of one row; a row that fails fails alone; what is missing is told."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.columns.templates import Renderer, opened_renderer
from pipelines.columns.values import values_of
from storage.domain.blueprints import Text, texts_of
from storage.domain.errors import InvalidConfig
from storage.domain.templates import parse_template, render_template
from storage.engine.sandbox.pool import Pool


@dataclass
class Workspace:
    sandbox: Pool
    workspace_id: int = 1


@pytest.fixture(scope="module")
def workspace() -> Iterator[Workspace]:
    pool = Pool()
    yield Workspace(pool)
    pool.close()


@contextmanager
def renderer(workspace: Workspace, *texts: tuple[str, str]) -> Iterator[Renderer]:
    made = [Text(f"text {at}", text, language) for at, (text, language) in enumerate(texts)]
    known = cast("Any", workspace)
    with opened_renderer(known, known, made) as found:
        yield found


def test_texts_of_both_languages_are_filled_from_columns(workspace: Workspace) -> None:
    columns = {
        "name": values_of(["Ann", None, "^x$", ""]),
        "n": values_of([1, 2.5, None, [1]]),
        "other": values_of([1, 2, 3, 4]),
    }
    with renderer(
        workspace,
        ("Hi {name} {{x}} {n}{gone}", "f-string"),
        ("{{ name }}|{{ n }}", "jinja2"),
        ("", "f-string"),
    ) as found:
        assert found.variables == ("name", "n", "gone")
        rendered = found.render(columns, 4)
    assert [texts.to_list() for texts in rendered.texts] == [
        ["Hi Ann {x} 1", "Hi  {x} 2.5", "Hi ^x$ {x} ", "Hi  {x} [1]"],
        ["Ann|1", "|2.5", "^x$|", "|[1]"],
        ["", "", "", ""],
    ]
    assert rendered.errors == {}
    assert rendered.missing_at(0) == ("gone",)
    assert rendered.missing_at(2) == ("n", "gone")
    assert rendered.rows_with_missing.to_list() == [True] * 4


def test_a_prompt_is_filled_row_by_row(workspace: Workspace) -> None:
    blocks = [{"type": "text", "text": "Say {a}"}, {"type": "image", "url": "{a}"}]
    messages = [{"role": "system", "content": blocks[:1]}, {"role": "user", "content": blocks}]
    blueprint = {"type": "chat", "messages": messages}
    known = cast("Any", workspace)
    with opened_renderer(known, known, list(texts_of(blueprint))) as found:
        rendered = found.render({"a": values_of(["x", "y"])}, 2)
    filled = rendered.blueprint_at(1, blueprint)
    said = [{**blocks[0], "text": "Say y"}, blocks[1]]
    assert [one["content"] for one in filled["messages"]] == [said[:1], said]


def test_a_row_that_does_not_render_fails_alone(workspace: Workspace) -> None:
    with renderer(workspace, ("{n}", "f-string"), ("a\n{{ 1 // n }}", "jinja2")) as found:
        rendered = found.render({"n": values_of([1, 0, 2])}, 3)
    assert [texts.to_list() for texts in rendered.texts] == [["1", None, "2"], ["a\n1", None, "a\n0"]]
    assert {at: error.code for at, error in rendered.errors.items()} == {1: "TEMPLATE_RENDER_ERROR"}
    assert rendered.errors[1].message.startswith("Line 2: ")
    assert rendered.rows_with_missing.to_list() == [False] * 3


@pytest.mark.parametrize(
    ("bomb", "error"),
    [
        ("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", "timeout"),
        ("{{ 'x' * 9000000 }}", "result_too_large"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "TEMPLATE_RENDER_ERROR"),
    ],
)
def test_a_bomb_fails_its_row_alone(workspace: Workspace, bomb: str, error: str) -> None:
    with renderer(workspace, (f"{{% if n == 1 %}}{bomb}{{% endif %}}{{{{ n }}}}", "jinja2")) as found:
        rendered = found.render({"n": values_of([0, 1, 2])}, 3)
    assert rendered.texts[0].to_list() == ["0", None, "2"]
    assert rendered.errors[1].code == error


def test_what_does_not_parse_is_named(workspace: Workspace) -> None:
    for text, language in (("{", "f-string"), ("{{ x", "jinja2")):
        with pytest.raises(InvalidConfig, match="text 0: line 1"), renderer(workspace, (text, language)):
            pass


def test_no_rows_are_no_texts(workspace: Workspace) -> None:
    with renderer(workspace, ("{a}", "f-string"), ("const", "f-string"), ("{{ a }}", "jinja2")) as found:
        rendered = found.render({"a": values_of([])}, 0)
    assert [texts.to_list() for texts in rendered.texts] == [[], [], []]
    assert rendered.rows_with_missing.to_list() == []


PIECES = st.sampled_from(["{a}", "{b c}", "{gone}", "{{", "}}", "x", "$", "^", " ", "ü"])
CELLS = st.none() | st.text('ab"^\n', max_size=3) | st.integers(-9, 9) | st.booleans() | st.floats(-9, 9)
CELLS |= st.lists(st.integers(0, 9), max_size=2)


@given(st.lists(PIECES, max_size=6), st.lists(st.tuples(CELLS, CELLS), max_size=5))
def test_rows_are_filled_as_one_row_is(pieces: list[str], rows: list[tuple[Any, Any]]) -> None:
    text = "".join(pieces)
    nobody = cast("Any", None)
    with opened_renderer(nobody, nobody, [Text("text", text, "f-string")]) as found:
        columns = {"a": values_of([a for a, _ in rows]), "b c": values_of([b for _, b in rows])}
        rendered = found.render(columns, len(rows))
    template = parse_template(text)
    assert rendered.texts[0].to_list() == [render_template(template, {"a": a, "b c": b}) for a, b in rows]
