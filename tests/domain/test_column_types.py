"""Configurations of columns: what fits, what is refused and by which key, and what is read."""

from typing import Any

import pytest

from storage.domain.column_types import TYPES, bind_config, find_type
from storage.domain.column_types.binding import Binder
from storage.domain.errors import InvalidConfig
from storage.domain.json_paths import parse_json_path
from storage.domain.python_reads import read_python

TITLES = {"A": "1", "B": "2", "Long title": "3"}


def bound(kind: str, config: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    titles = {one: title for title, one in TITLES.items()}

    def find(name: str) -> tuple[str, str] | None:
        found = TITLES.get(name, name)
        return (found, titles[found]) if found in titles else None

    def read(language: str, code: str) -> Any:
        return read_python(code) if language == "PYTHON" else None

    return bind_config(kind, config, Binder(find, read_code=read))


def test_names_of_types_in_any_case_with_aliases() -> None:
    assert [find_type(name) for name in ("TEXT", "Code_Execution", "LLM_ASSERTION", "compare", "x")] == [
        "text",
        "code",
        "llm",
        "comparison",
        None,
    ]


@pytest.mark.parametrize(
    ("kind", "config", "key"),
    [
        ("text", {"x": 1}, "config.x"),
        ("comparison", {}, "config.sources"),
        ("comparison", {"sources": ["A"]}, "config.sources"),
        ("comparison", {"sources": ["A", "B"], "target": 1}, "config.sources"),
        ("comparison", {"sources": ["A", "Nobody"]}, "config.sources"),
        ("comparison", {"sources": ["A", "B", "A"]}, "config.sources"),
        (
            "comparison",
            {"sources": ["A", "B"], "comparison_type": {"operator": "like"}},
            "config.comparison_type.operator",
        ),
        (
            "comparison",
            {"sources": ["A"], "target": "(", "comparison_type": {"operator": "regex"}},
            "config.target",
        ),
        ("comparison", {"sources": ["A", 1]}, "config.sources[1]"),
        ("composition", {}, "config.source"),
        ("composition", {"sources": ["A"]}, "config.operation"),
        (
            "composition",
            {"sources": ["A", "B"], "operation": "json_path", "json_path": "a"},
            "config.sources",
        ),
        ("composition", {"source": "A", "operation": "json_path"}, "config.json_path"),
        ("composition", {"source": "A", "separator": ","}, "config.separator"),
        ("composition", {"source": "A", "operation": "regex_extract", "pattern": "("}, "config.pattern"),
        ("composition", {"source": 3}, "config.source"),
        ("score", {"sources": ["A"], "metric": "levenshtein"}, "config.sources"),
        ("score", {"sources": ["A"], "metric": "best"}, "config.metric"),
        ("score", {"sources": ["A"], "metric": "weighted_mean", "weights": [1, 2]}, "config.weights"),
        ("code", {"code": "return data[name]"}, "config.sources"),
        ("code", {"code": "return ("}, "config.code: line 1"),
        ("code", {"code": "x", "language": "SQL"}, "config.sources"),
        ("code", {"code": ""}, "config.code"),
        ("llm", {}, "config.prompt"),
        ("llm", {"prompt": "{Nobody}"}, "config.prompt"),
        ("llm", {"prompt": "{", "engine": {"provider": "stub", "model": "m"}}, "config.prompt: line 1"),
        ("llm", {"prompt": "x", "engine": {"provider": "stub"}}, "config.engine.model"),
        ("llm", {"source": "A"}, "config.prompt"),
        ("prompt_template", {}, "config.template"),
        ("prompt_template", {"template": {"name": "a", "id": 1}}, "config.template"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key(kind: str, config: dict[str, Any], key: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        bound(kind, config)
    assert refused.value.message.startswith(key)


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_publishes_a_schema_whose_example_fits(kind: str) -> None:
    (example,) = TYPES[kind].schema["examples"]
    names = ("Answer", "Expected", "Question", "Corrected")
    binder = Binder(lambda name: (name, name) if name in names else None)
    binder.read_code = lambda _, code: read_python(code)
    bind_config(kind, example, binder)


def test_code_reads_the_columns_that_it_names_under_that_name() -> None:
    code = 'return data["Long title"] + data.get("B", "") + str("A" and data.A)'
    config, edges = bound("code", {"code": code})
    assert config["language"] == "PYTHON"
    assert {(edge["column_id"], edge["config_meta"]["variable_name"]) for edge in edges} == {
        ("3", "Long title"),
        ("2", "B"),
        ("1", "A"),
    }
    _, edges = bound("code", {"code": "return len(data)", "sources": ["3", "A"]})
    assert [edge["config_meta"] for edge in edges] == [
        {"position": 0, "variable_name": "Long title"},
        {"position": 1, "variable_name": "A"},
    ]


def test_a_prompt_reads_titles_that_are_not_mapped() -> None:
    config, edges = bound("llm", {"prompt": "{x} and {Long title}", "variable_mappings": {"x": "A"}})
    assert config["variable_mappings"] == {"x": "1"}
    assert [(edge["column_id"], edge["config_key"]) for edge in edges] == [
        ("1", "variable_mappings"),
        ("3", "prompt"),
    ]


def test_json_paths() -> None:
    assert parse_json_path('$.a["b c"][-1].d') == ("a", "b c", -1, "d")
    assert parse_json_path("a.b[0]") == ("a", "b", 0)
    assert parse_json_path("$") == ()
    for wrong in ("$..a", "$.", "a b", "[x]", "$a", "$.a[*]"):
        with pytest.raises(InvalidConfig):
            parse_json_path(wrong)
