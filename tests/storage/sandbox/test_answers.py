"""Answers of workers about rows are read strictly: a worker belongs to the tenant by then."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.engine.sandbox.answers import Unreadable, read_cells

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e300, 1e300) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(st.lists(JSON, min_size=1, max_size=5))
def test_values_come_as_they_were_spelled(values: list[Any]) -> None:
    body = json.dumps({"values": values, "errors": []}).encode()
    assert read_cells(body, len(values)) == (values, {})


def test_an_error_has_no_value_and_names_its_line() -> None:
    body = b'{"values":[1,2,3],"errors":[[1,"code_error","no",4],[2,"x","y",null]]}'
    values, errors = read_cells(body, 5)
    assert values == [1, None, None]
    assert (errors[1].code, errors[1].message) == ("code_error", "Line 4: no")
    assert (errors[2].code, errors[2].message) == ("x", "y")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"7",
        b'{"values":[1]}',
        b'{"values":[],"errors":[]}',
        b'{"values":[1,2,3],"errors":[]}',
        b'{"values":{"a":1},"errors":[]}',
        b'{"values":[1],"errors":[[1,"a","b",null]]}',
        b'{"values":[1],"errors":[[-1,"a","b",null]]}',
        b'{"values":[1],"errors":[[0,"a",7,null]]}',
        b'{"values":[1],"errors":[[0,"a","b","c"]]}',
        b'{"values":[1],"errors":[[0,"a"]]}',
        b'{"values":[NaN],"errors":[]}',
        b'{"values":[Infinity],"errors":[]}',
        b'{"values":[[1e999]],"errors":[]}',
        b'{"values":[1],"errors":[]}]',
        b'{"values":["\xff"],"errors":[]}',
        b'{"values":[' + b"1" * 5000 + b'],"errors":[]}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_answer_is_not_taken(body: bytes) -> None:
    with pytest.raises(Unreadable):
        read_cells(body, 2)


@pytest.mark.parametrize(
    "value",
    ['"\\ud800"', '["\\uDC00"]', '{"\\ud800":1}', "[" * 201 + "]" * 201, '{"a":' * 201 + "1" + "}" * 201],
)
def test_a_value_that_nobody_could_be_given_is_an_error_of_its_cell(value: str) -> None:
    values, errors = read_cells(f'{{"values":[{value},1],"errors":[]}}'.encode(), 2)
    assert (values, list(errors)) == ([None, 1], [0])


def test_raw_halves_of_surrogates_are_an_error_too() -> None:
    body = '{"values":["\ud800","ok","\ud55c"],"errors":[]}'.encode("utf-8", "surrogatepass")
    values, errors = read_cells(body, 3)
    assert (values, list(errors)) == ([None, "ok", "\ud55c"], [0])


def test_words_of_a_worker_are_made_printable() -> None:
    _, errors = read_cells(b'{"values":[1],"errors":[[0,"a\\ud800","b\\ud800",null]]}', 1)
    assert (errors[0].code, errors[0].message) == ("a?", "b?")
