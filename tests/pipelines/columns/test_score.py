"""score: metrics of two columns, and of many; what is nothing, and what is no number."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.columns.likeness import json_likeness
from pipelines.columns.score import Score
from tests.pipelines.columns.computing import IDS, Found, computed

WORDS = st.text("ab c", max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


def scored(metric: str, *columns: list[Any], **config: Any) -> Found:
    sources = [str(one) for one in IDS[: len(columns)]]
    return computed(Score({"metric": metric, "sources": sources, **config}), columns)


@pytest.mark.parametrize(
    ("metric", "left", "right", "expected"),
    [
        ("absolute_numeric_distance", [1, "2", -1.5], [2.5, 2, " 1.5 "], [1.5, 0.0, 3.0]),
        ("levenshtein", ["kitten", None, "", "a", 1], ["sitting", None, None, None, "1"],
         [4 / 7, 1.0, 1.0, 0.0, 1.0]),
        ("jaro_winkler", ["MARTHA", "a"], ["MARHTA", "b"], [0.9611111111111111, 0.0]),
        ("exact_match", ["a", 1, None, "A", [1]], ["a", "1", None, "a", "[1]"], [1.0, 1.0, 1.0, 0.0, 1.0]),
        ("token_f1", ["The cat, sat", "a b", "", "a"], ["the CAT", "c", "", ""], [0.8, 0.0, 1.0, 0.0]),
        ("json_similarity",
         ['{"a": 1, "b": "xy"}', [1, 2], True, {}], [{"b": "xz", "a": 1.0}, [1, 3, 4], 1, {}],
         [0.75, 1 / 3, 0.0, 1.0]),
        ("cosine_similarity", [[1, 0], "[1, 1]", [1, -1], [0, 0]], [[1, 1], [1, 1], [-1, 1], [1, 1]],
         [0.707106781187, 1.0, 0.0, 0.0]),
    ],
)  # fmt: skip
def test_two_columns_are_measured(
    metric: str, left: list[Any], right: list[Any], expected: list[float]
) -> None:
    values, errors = scored(metric, left, right)
    assert values == pytest.approx(expected)
    assert errors == {}


@pytest.mark.parametrize(
    ("metric", "left", "right", "errors"),
    [
        ("absolute_numeric_distance", [1, None, "x", 1e308], [1, 1, 1, -1e308],
         {1: "not_a_number", 2: "not_a_number", 3: "not_finite"}),
        ("cosine_similarity",
         [[1], "x", [1, "a"], None, [[1]], "[1,,2]"], [[1, 2], [1], [1, 2], [1], [1], [1, 2]],
         {0: "not_comparable", **dict.fromkeys(range(1, 6), "not_a_vector")}),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_an_error(
    metric: str, left: list[Any], right: list[Any], errors: dict[int, str]
) -> None:
    values, found = scored(metric, left, right)
    assert found == errors
    assert all(values[at] is None for at in errors)


@pytest.mark.parametrize(
    ("metric", "columns", "config", "expected"),
    [
        ("weighted_mean", ([True, False, None, None], [0.5, "1", 1, None]), {"weights": [3, 1]},
         [0.875, 0.25, 1.0, None]),
        ("weighted_mean", ([1, 3],), {}, [1.0, 3.0]),
        ("all", (["Yes", "no", None], [True, True, True]), {}, [1.0, 0.0, 0.0]),
        ("any", (["passed", "no", None], [0, 0, 0]), {}, [1.0, 0.0, 0.0]),
        ("all", ([0.4, 0.9], [0.95, 0.95]), {"pass_threshold": 0.5}, [0.0, 1.0]),
        ("min", ([1, None], ["3", 2]), {}, [1.0, 2.0]),
        ("max", ([1, None], ["3", None]), {}, [3.0, None]),
        ("max", (["good", "bad", None],), {"true_values": ["good"]}, [1.0, 0.0, None]),
        ("max", (["good", "bad", None],), {"false_values": ["bad"]}, [1.0, 0.0, None]),
        ("max", ([1, "A", 0.25],), {"true_values": ["A"], "false_values": [1]}, [0.0, 1.0, 0.25]),
        ("weighted_mean", ([0.4, 0.6],), {"pass_threshold": 0.5}, [0.0, 1.0]),
    ],
)  # fmt: skip
def test_columns_are_combined(
    metric: str, columns: tuple[list[Any], ...], config: dict[str, Any], expected: list[float | None]
) -> None:
    assert scored(metric, *columns, **config) == (expected, {})


def test_values_that_are_neither_are_errors_of_their_rows() -> None:
    values, errors = scored("all", ["yes", "maybe", [1]], [True, True, True])
    assert (values, errors) == ([1.0, None, None], {1: "not_a_score", 2: "not_a_score"})
    values, errors = scored("max", ["good", "so so"], true_values=["good"], false_values=["bad"])
    assert (values, errors) == ([1.0, None], {1: "not_a_score"})


def test_a_threshold_makes_a_score_pass_or_fail() -> None:
    assert scored("levenshtein", ["kitten", "aa"], ["sitting", "aa"], pass_threshold=1) == ([0.0, 1.0], {})
    assert scored("absolute_numeric_distance", [1, 1], [2, 3], pass_threshold=1) == ([1.0, 0.0], {})


@pytest.mark.parametrize("metric", ["levenshtein", "all", "weighted_mean", "cosine_similarity"])
def test_no_rows_have_no_scores(metric: str) -> None:
    assert scored(metric, [], []) == ([], {})


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5))
def test_likeness_of_texts_has_its_laws(rows: list[tuple[str, str]]) -> None:
    left, right = [one for one, _ in rows], [two for _, two in rows]
    for metric in ("levenshtein", "jaro_winkler", "token_f1", "exact_match"):
        values, errors = scored(metric, left, right)
        assert values == pytest.approx(scored(metric, right, left)[0])
        assert errors == {}
        assert all(0 <= value <= 1 for value in values)
        assert scored(metric, left, left)[0] == [1.0] * len(rows)


@given(JSON, JSON)
def test_likeness_of_json_has_its_laws(one: Any, two: Any) -> None:
    found = json_likeness(one, two)
    assert 0 <= found <= 1
    assert found == pytest.approx(json_likeness(two, one))
    assert json_likeness(one, one) == 1


def test_texts_that_are_too_long_to_be_measured_fail_alone() -> None:
    long = "ab" * 80_000
    for metric in ("levenshtein", "jaro_winkler"):
        values, errors = scored(metric, [long, long, "a"], [long[1:], long, "a"])
        assert (values, errors) == ([None, 1.0, 1.0], {0: "input_too_large"})
    values, errors = scored("json_similarity", [[long], [long], None], [[long[1:]], [long], None])
    assert (values, errors) == ([None, 1.0, 1.0], {0: "input_too_large"})
