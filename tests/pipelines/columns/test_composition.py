"""composition: mirrors and operations over the columns of a row."""

from tests.pipelines.columns.computing import composed


def test_coalesce_takes_the_first_that_is_not_empty() -> None:
    assert composed(["", None, "z"], [1, 2, 3], operation="coalesce")[0] == [1, 2, "z"]
    assert composed(["", "b"], ["x", "y"], operation="coalesce")[0] == ["x", "b"]


def test_concat_joins_what_is_shown() -> None:
    found = composed(["", None, "z"], [1, 2.5, [True]], operation="concat", separator="-")[0]
    assert found == ["-1", "-2.5", "z-[true]"]


def test_combined_columns_keep_names_and_values() -> None:
    found = composed(['q"', None], [1, [2]], names=['x"y', "B"], operation="combine_columns")[0]
    assert found == [{'x"y': 'q"', "B": 1}, {'x"y': None, "B": [2]}]
    deep: list[object] = []
    for _ in range(200):
        deep = [deep]
    found, errors = composed([1, deep], [2, 3], operation="combine_columns")
    assert (found, errors) == ([{"A": 1, "B": 2}, None], {1: "too_deep"})


def test_a_place_in_json() -> None:
    values = ['{"a":[1,{"c d":"x"}]}', "no", '{"a":[{"c d":[2]}]}']
    assert composed(values, operation="json_path", json_path='$.a[-1]["c d"]')[0] == ["x", None, [2]]


def test_regex_extract() -> None:
    assert composed(["ab12", "no"], operation="regex_extract", pattern=r"b(\d)")[0] == ["1", None]
    assert composed(["ab12"], operation="regex_extract", pattern=r"b\d")[0] == ["b1"]
    assert composed(["ab12"], operation="regex_extract", pattern=r"(b)(\d)", group=2)[0] == ["1"]
    assert composed(["x"], operation="regex_extract", pattern=r"(?=x)")[1] == {0: "invalid_pattern"}


def test_parse_value_reads_or_fails_the_row() -> None:
    found, errors = composed(["12", "no", "", "3.5"], operation="parse_value", value_type="NUMBER")
    assert (found, errors) == ([12, None, None, 3.5], {1: "cannot_parse"})
    assert composed(["1", "2"], operation="parse_value", value_type="NUMBER")[0] == [1, 2]
    found, errors = composed(["True", "no", ""], operation="parse_value", value_type="BOOLEAN")
    assert (found, errors) == ([True, None, None], {1: "cannot_parse"})
    found, errors = composed(["[1]", "{", None], operation="parse_value", value_type="JSON")
    assert (found, errors) == ([[1], None, None], {1: "cannot_parse"})
    # what only some readers take for JSON, and what none can follow
    odd = ["NaN", "[-Infinity]", "1e999", "1" * 5000, "[" * 300 + "]" * 300, '{"inf": 1e30}']
    found, errors = composed(odd, operation="parse_value", value_type="JSON")
    assert (found, errors) == ([None] * 5 + [{"inf": 1e30}], dict.fromkeys(range(5), "cannot_parse"))


def test_count_min_and_max() -> None:
    texts, whole = ["12", "no", "", "3"], [1, 2, 3, 4]
    assert composed(texts, whole, operation="count")[0] == [2, 2, 1, 2]
    assert composed(texts, whole, operation="min") == ([1.0, None, 3.0, 3.0], {1: "not_a_number"})
    assert composed([12, 5], [1, 7], operation="max")[0] == [12, 7]
