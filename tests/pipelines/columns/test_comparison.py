"""comparison: what equals what, in texts, numbers and JSON."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.columns.comparison import Comparison, json_equal
from pipelines.columns.values import values_of
from storage.domain.results import Chunk
from tests.pipelines.columns.computing import IDS, compared

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=5,
)


def test_texts_are_compared_as_they_are_shown() -> None:
    found, errors = compared("STRING", "equals", ["a", None, "", 1, "a"], ["a", None, None, "1", "A"])
    assert (found, errors) == ([True, True, False, True, False], {})
    assert compared("STRING", "not_equals", ["a", None], ["a", "x"])[0] == [False, True]
    assert compared("STRING", "lt", ["a", None, "b"], ["b", "x", "a"])[0] == [True, False, False]


@pytest.mark.parametrize(
    ("operator", "target", "expected"),
    [
        ("contains", "b.", [True, False, False]),
        ("starts_with", "a", [True, True, False]),
        ("ends_with", "c", [False, True, False]),
        ("regex", "^a.c", [False, True, False]),
    ],
)
def test_operators_of_texts(operator: str, target: str, expected: list[bool]) -> None:
    assert compared("STRING", operator, ["ab.", "abc", None], target=target) == (expected, {})


def test_a_pattern_that_is_none_fails_its_row_alone() -> None:
    found, errors = compared("STRING", "regex", ["a1", "b"], ["a.", "("])
    assert (found, errors) == ([True, None], {1: "invalid_pattern"})
    assert compared("STRING", "regex", ["x"], target="(?=x)")[1] == {0: "invalid_pattern"}


def test_numbers_also_those_spelled_in_texts() -> None:
    found, errors = compared("NUMBER", "lt", ["1", "x", 3, None, " 1e1 "], ["2", "2", 1, 1, 11])
    assert found == [True, None, False, None, True]
    assert errors == {1: "not_a_number", 3: "not_a_number"}
    assert compared("NUMBER", "equals", [2**53 + 1], [2**53])[0] == [False]


def test_json_is_compared_by_what_it_says() -> None:
    left = ['{"a":1,"b":[true]}', "x", "1", {"q": 1.0}, "[1]", True]
    right = ['{"b":[true],"a":1.0}', "x", 1, '{"q":1}', "[2]", 1]
    assert compared("JSON", "equals", left, right)[0] == [True, True, True, True, False, False]
    found, errors = compared("JSON", "gt", ['{"a":{"b":5}}', '{"a":1}'], target=3, json_path="$.a.b")
    assert (found, errors) == ([True, None], {1: "not_comparable"})
    assert compared("JSON", "contains", ['[1,{"a":2}]', '{"k":0}', '"text"'], target="k")[0] == [
        False,
        True,
        False,
    ]


def test_texts_that_no_reader_takes_for_json_are_compared_as_texts() -> None:
    deep = "[" * 300 + "]" * 300
    left, right = [deep, deep, "NaN", "1e999", "[1e999]", "1"], [deep, "[]", "NaN", "1e998", "[]", "1.0"]
    assert compared("JSON", "equals", left, right) == ([True, False, True, False, False, True], {})
    assert compared("JSON", "starts_with", left[:3], target="N") == ([False, False, True], {})


@settings(max_examples=30)
@given(st.lists(st.tuples(JSON, JSON), min_size=5, max_size=20))
def test_json_columns_are_compared_as_their_values_are(pairs: list[tuple[Any, Any]]) -> None:
    expected = [json_equal(a, b) for a, b in pairs]
    spelled = [[json.dumps(value) for value in side] for side in zip(*pairs, strict=True)]
    assert compared("JSON", "equals", *spelled) == (expected, {})
    assert compared("JSON", "not_equals", *spelled) == ([not one for one in expected], {})


@given(st.lists(st.tuples(JSON, JSON), min_size=1, max_size=6))
def test_json_equality_is_that_of_values(pairs: list[tuple[Any, Any]]) -> None:
    def same(a: Any, b: Any) -> bool:
        if isinstance(a, bool) or isinstance(b, bool):
            return a is b
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(map(same, a, b))
        if isinstance(a, dict) and isinstance(b, dict):
            return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
        return bool(a == b)

    for a, b in pairs:
        assert json_equal(a, b) == same(a, b)
        assert json_equal(a, a)


def test_a_pattern_that_is_too_much_for_a_text_fails_its_row_alone() -> None:
    texts = ["a" * 200_000, "a" * 2_000, "b"]
    large = "(a?){2000}a{2000}"
    for kind in ("STRING", "JSON"):
        found = ([None, True, False], {0: "input_too_large"})
        assert compared(kind, "regex", texts, target=large) == found
        assert compared(kind, "regex", texts, [large] * 3) == found
    assert compared("STRING", "regex", ["a" * 200_000], target="a{3}")[0] == [True]
    assert compared("JSON", "regex", ["x", 1, None, ["x"]], target="x") == ([True, False, False, False], {})


def test_a_cancelled_run_ends_between_stretches() -> None:
    told: list[int] = []

    def cancelled(_completed: int, _failed: int) -> None:
        told.append(1)
        raise KeyboardInterrupt

    columns = {IDS[0]: values_of(["a" * 50_000] * 6)}
    how = {"type": "STRING", "operator": "regex"}
    config = {"sources": [str(IDS[0])], "target": "(a?){3000}b", "comparison_type": how}
    with pytest.raises(KeyboardInterrupt):
        list(Comparison(config, cancelled).compute(Chunk(range(6), range(6), columns)))
    assert told == [1]
