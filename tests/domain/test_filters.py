"""Filter groups are parsed into few shapes, and what is none is named by its path."""

from typing import Any

import pytest

from storage.domain.errors import Invalid
from storage.domain.filter_match import Subject, matches
from storage.domain.filters import (
    EVERYTHING,
    FIELDS,
    MOST_COSTLY_FILTERS,
    MOST_DEPTH,
    MOST_FILTERS,
    MOST_VALUES,
    OPERATORS,
    Filter,
    Group,
    Holds,
    IsAbsent,
    IsTrue,
    OneOf,
    Range,
    parse_filter_group,
)
from tests.logs import stored_fields

DAY = 1_714_521_600_000_000
DAY_US = 86_400_000_000


def one(field: str, operator: str, value: Any = None, nested_key: str | None = None) -> Filter:
    made = {"field": field, "operator": operator, "value": value, "nested_key": nested_key}
    (parsed,) = parse_filter_group({"filters": [made]}).filters
    assert isinstance(parsed, Filter)
    return parsed


def wrong(group: Any) -> list[tuple[str, str]]:
    with pytest.raises(Invalid) as raised:
        parse_filter_group(group)
    return [(".".join(problem.loc), problem.msg) for problem in raised.value.problems]


@pytest.mark.parametrize(
    ("asked", "test", "negated"),
    [
        (("engine", "is", "gpt"), OneOf(("gpt",)), False),
        (("engine", "not_in", ["a", "b", "a"]), OneOf(("a", "b")), True),
        (("status", "in", "ERROR"), OneOf(("ERROR",)), False),
        (("prompt", "is_not", 7), OneOf(("7",)), True),
        (("input_text", "not_contains", "Hi"), Holds("Hi"), True),
        (("output_text", "ends_with", "%"), Holds("%", "end"), False),
        (("input_tokens", "gt", 3), Range(4, None), False),
        (("input_tokens", "gt", "3.5"), Range(4, None), False),
        (("input_tokens", "lt", 3.5), Range(None, 3), False),
        (("input_tokens", "lte", 3.5), Range(None, 3), False),
        (("input_tokens", "eq", "3.0"), OneOf((3,)), False),
        (("input_tokens", "eq", 3.5), OneOf(()), False),
        (("pl_id", "in", [1, "2", 2.5]), OneOf((1, 2)), False),
        (("cost", "gte", "0.1"), Range(0.1, None), False),
        (("cost", "between", [0, "1"]), Range(0.0, 1.0), False),
        (("latency_ms", "between", {"min": 1, "max": 2}), Range(1.0, 2.0), False),
        (("prompt_id", "is_null"), IsAbsent(), False),
        (("prompt_id", "is_not_null"), IsAbsent(), True),
        (("request_start_time", "is", "2024-05-01"), Range(DAY, DAY + DAY_US - 1), False),
        (("request_start_time", "before", "2024-05-01"), Range(None, DAY - 1), False),
        (("request_start_time", "after", "2024-05-01"), Range(DAY + DAY_US, None), False),
        (("request_start_time", "after", "2024-05-01T00:00:00"), Range(DAY + 1, None), False),
        (("request_end_time", "is", "2024-05-01T02:00:00+02:00"), Range(DAY, DAY), False),
        (("request_end_time", "between", ["2024-05-01", 1_714_521_600]), Range(DAY, DAY), False),
        (("is_json", "is_false"), IsTrue(), True),
        (("tags", "contains", "a"), OneOf(("a",)), False),
        (("tags", "is_not_empty"), IsAbsent(), True),
        (("metadata", "key_contains", "v", "k"), Holds("v"), False),
        (("metadata", "key_equals", 42, "k"), OneOf(("42",)), False),
        (("metadata", "key_not_equals", True, "k"), OneOf(("true",)), True),
    ],
)
def test_operators_become_few_tests(asked: tuple[Any, ...], test: Any, negated: bool) -> None:
    parsed = one(*asked)
    assert (parsed.test, parsed.negated) == (test, negated)


def test_every_pairing_of_field_and_operator_is_known_and_no_other() -> None:
    values = {"datetime": "2024-05-01", "integer": 1, "number": 1}
    every = {operator for some in OPERATORS.values() for operator in some}
    for field, kind in FIELDS.items():
        for operator in every:
            value = values.get(kind, "x")
            value = [value, value] if operator == "between" else value
            made = {"field": field, "operator": operator, "value": value}
            group = {"filters": [made | ({"nested_key": "k"} if kind == "nested" else {})]}
            if operator in OPERATORS[kind]:
                parse_filter_group(group)
            else:
                assert wrong(group)[0][0] == "body.filter_group.filters.0.operator"


def test_the_short_shape_means_a_metadata_value_and_scores_have_a_default_name() -> None:
    (short,) = parse_filter_group({"filters": [{"value": "ada", "nested_key": "user"}]}).filters
    assert short == Filter("metadata", OneOf(("ada",)), nested_key="user")
    assert one("score", "gte", 50).nested_key == "default"
    assert one("score", "gte", 50, "quality").nested_key == "quality"


def test_empty_groups_match_all() -> None:
    assert parse_filter_group({}) == EVERYTHING
    nothing_asked = parse_filter_group({"logic": "OR", "filters": [{"logic": "AND", "filters": []}]})
    assert matches(nothing_asked, Subject(1, stored_fields(), {}))


@pytest.mark.parametrize(
    ("group", "where"),
    [
        ([], "body.filter_group"),
        ({"logic": "XOR"}, "body.filter_group.logic"),
        ({"logic": ["AND"]}, "body.filter_group.logic"),
        ({"colour": 1}, "body.filter_group.colour"),
        ({"filters": {}}, "body.filter_group.filters"),
        ({"filters": ["x"]}, "body.filter_group.filters.0"),
        (
            {"filters": [{"field": "colour", "operator": "is", "value": 1}]},
            "body.filter_group.filters.0.field",
        ),
        ({"filters": [{"field": ["engine"], "operator": "is"}]}, "body.filter_group.filters.0.field"),
        ({"filters": [{"field": "engine"}]}, "body.filter_group.filters.0.operator"),
        ({"filters": [{"value": "x"}]}, "body.filter_group.filters.0.field"),
        ({"filters": [{"field": "engine", "operator": "is"}]}, "body.filter_group.filters.0.value"),
        (
            {
                "filters": [
                    {},
                    {"logic": "OR", "filters": [{"field": "engine", "operator": "gt", "value": 1}]},
                ]
            },
            "body.filter_group.filters.1.filters.0.operator",
        ),
        (
            {"filters": [{"field": "metadata", "operator": "key_equals", "value": "x"}]},
            "body.filter_group.filters.0.nested_key",
        ),
        (
            {"filters": [{"field": "engine", "operator": "is", "value": "x", "nested_key": "k"}]},
            "body.filter_group.filters.0.nested_key",
        ),
        (
            {"filters": [{"field": "engine", "operator": "is", "value": "x", "values": []}]},
            "body.filter_group.filters.0.values",
        ),
        (
            {"filters": [{"field": "engine", "operator": "in", "value": ["a", None]}]},
            "body.filter_group.filters.0.value.1",
        ),
    ],
)
def test_what_is_no_filter_is_named_by_its_path(group: Any, where: str) -> None:
    assert where in [loc for loc, _ in wrong(group)]


@pytest.mark.parametrize(
    ("field", "operator", "value"),
    [
        ("cost", "between", [1]),
        ("cost", "between", [1, None]),
        ("cost", "between", 1),
        ("cost", "gt", "much"),
        ("cost", "gt", "nan"),
        ("cost", "gt", float("inf")),
        ("cost", "gt", 10**400),
        ("cost", "gt", "1_000"),
        ("cost", "gt", True),
        ("input_tokens", "eq", 2**63),
        ("input_tokens", "eq", []),
        ("request_start_time", "is", "yesterday"),
        ("request_start_time", "is", "2024-02-30"),
        ("request_start_time", "after", 10**400),
        ("request_start_time", "between", ["2024-05-01"]),
        ("request_start_time", "is", None),
        ("engine", "is", ["a"]),
        ("input_text", "contains", {"a": 1}),
        ("input_text", "contains", "x" * 10_001),
    ],
)
def test_values_that_do_not_fit_are_refused(field: str, operator: str, value: Any) -> None:
    (problem,) = wrong({"filters": [{"field": field, "operator": operator, "value": value}]})
    assert problem[0] == "body.filter_group.filters.0.value"


def test_groups_may_be_deep_and_wide_up_to_a_limit_that_is_told() -> None:
    leaf = {"field": "engine", "operator": "is", "value": "x"}

    def deep(depth: int) -> dict[str, Any]:
        group: dict[str, Any] = {"filters": [leaf]}
        for at in range(depth - 1):
            group = {"logic": "OR" if at % 2 else "AND", "filters": [leaf, group]}
        return group

    assert isinstance(parse_filter_group(deep(MOST_DEPTH)), Group)
    assert "deeper than" in wrong(deep(MOST_DEPTH + 1))[0][1]
    assert "deeper than" in wrong(deep(3_000))[0][1]
    parse_filter_group({"filters": [leaf] * MOST_FILTERS})
    assert "at most" in wrong({"filters": [leaf] * 10_000})[0][1]
    many = [leaf | {"operator": "in", "value": list(map(str, range(MOST_VALUES // 2 + 1)))}] * 2
    assert "at most" in wrong({"filters": many})[0][1]


@pytest.mark.parametrize(
    ("field", "operator", "of"),
    [
        ("input_text", "contains", "texts"),
        ("score", "eq", "scores"),
        ("input_variables", "key_equals", "input variables"),
        ("input_variable_keys", "contains", "input variables"),
    ],
)
def test_of_what_costs_much_there_are_few(field: str, operator: str, of: str) -> None:
    leaf = {"field": field, "operator": operator, "value": "1"}
    one = leaf | ({"nested_key": "k"} if field == "input_variables" else {})
    parse_filter_group({"filters": [one] * MOST_COSTLY_FILTERS})
    with pytest.raises(Invalid, match=rf"filters\.100: a group holds at most 100 filters of {of}"):
        parse_filter_group({"filters": [one] * (MOST_COSTLY_FILTERS + 1)})


def test_of_many_problems_some_are_told() -> None:
    assert len(wrong({"filters": [{"field": "colour"}] * 500})) == 20
