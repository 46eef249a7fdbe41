"""JSON files read as Python's json module reads them, each value with its type, or say what is wrong."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain.file_imports import MAX_CELL_BYTES
from storage.domain.imports import ImportRefused
from storage.engine.json_import import JsonFile, json_batches


def read(content: bytes) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """Return titles and rows, values decoded from how they are kept."""
    file = JsonFile(io.BytesIO(content), 0)
    rows: list[dict[str, Any]] = []
    for batch in file:
        columns = [
            [None if v is None else json.loads(v) for v in array.to_pylist()]
            if encoding == "json"
            else array.to_pylist()
            for array, encoding in zip(batch.arrays, batch.encodings, strict=True)
        ]
        rows += [
            {title: column[at] for title, column in zip(file.titles, columns, strict=False)}
            for at in range(batch.rows)
        ]
    return file.titles, [{title: row.get(title) for title in file.titles} for row in rows]


text = st.text(st.characters(codec="utf-8"), max_size=8)
leaf = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)
value = leaf | st.lists(leaf, max_size=2) | st.dictionaries(text, leaf, max_size=2)
row = st.dictionaries(st.sampled_from(["a", "b", "c", "é", "d d", '"']), value, max_size=5)


@pytest.fixture(params=[1, 7, 1 << 20])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How much is read at once: windows that end within a row, and windows that hold all."""
    monkeypatch.setattr("storage.engine.json_rows._CHUNK", request.param)
    return int(request.param)


def check(rows: list[dict[str, Any]], content: bytes, batch_rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("storage.engine.json_import._BATCH_ROWS", batch_rows)
        titles, found = read(content)
    assert list(titles) == list(dict.fromkeys(key for row in rows for key in row))
    wanted = [{title: row.get(title) for title in titles} for row in rows]
    # as text, because 1 == 1.0 == True
    assert json.dumps(found) == json.dumps(wanted)


@pytest.mark.usefixtures("chunk")
@given(
    rows=st.lists(row, max_size=8),
    indent=st.sampled_from([None, 0, 2]),
    ascii_only=st.booleans(),
    batch_rows=st.integers(1, 5),
)
@settings(max_examples=120)
def test_an_array_comes_back_value_for_value(
    rows: Any, indent: Any, ascii_only: bool, batch_rows: int
) -> None:
    check(rows, json.dumps(rows, indent=indent, ensure_ascii=ascii_only).encode(), batch_rows)


@pytest.mark.usefixtures("chunk")
@given(
    rows=st.lists(row, min_size=1, max_size=8),
    end=st.sampled_from(["\n", "\r\n", "\n\n \n"]),
    ascii_only=st.booleans(),
    batch_rows=st.integers(1, 5),
)
@settings(max_examples=120)
def test_one_object_a_line_comes_back_value_for_value(
    rows: Any, end: str, ascii_only: bool, batch_rows: int
) -> None:
    lines = end.join(json.dumps(row, ensure_ascii=ascii_only) for row in rows)
    check(rows, lines.encode(), batch_rows)
    check(rows, (end + lines + end).encode(), batch_rows)


@given(st.text("{}[]:,\"a1 \n\\-.eEtrufalsn'", max_size=20))
@settings(max_examples=500)
def test_what_python_does_not_read_is_refused(text: str) -> None:
    try:
        rows = json.loads(f'[{{"k": {text}}}]', parse_constant=_refuse, object_pairs_hook=_distinct)
    except ValueError:
        with pytest.raises(ImportRefused):
            read(f'[{{"k": {text}}}]'.encode())
    else:
        if all(isinstance(one, dict) and all(key.strip() for key in one) for one in rows):
            check(rows, f'[{{"k": {text}}}]'.encode(), 3)


def _refuse(word: str) -> None:
    raise ValueError(word)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("twice")
    return dict(pairs)


HALF = "the value of “a” holds half of a surrogate pair, which is no text"


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "The file is empty"),
        (" \n", "The file has no JSON in it: all its lines are blank"),
        ("a,b\n1,2\n", "Line 1: the file is no JSON: it begins neither with [ nor with {"),
        ('[{"a": 1},\n 5]', "Line 2: row 2 is no object"),
        ('[{"a": 1},\n]', "Line 2: row 2 is no object"),
        ('[{"a": 1}\n{"a": 2}]', "Line 2: a comma or ] is missing"),
        ('[{"a": 1}', "Line 1: the array ends without ]"),
        ('[{"a": 1}]\n\nx', "Line 3: there is text after the end of the array"),
        ('{"a": 1}\n[1]\n', "Line 2: row 2 is no object"),
        ('{"a": 1} {"a": 2}', "Line 1: there is text after the object; one object a line can be read"),
        ('{"a": 1}\n{"a": 1, "a": 2}\n', "Line 2: row 2 has the key “a” twice"),
        ('{"a": {"b": 1, "b": 2}}', "Line 1: row 1 has the key “b” twice"),
        ('{"a": 1}\n{"a": NaN}\n', "Line 2: row 2 has NaN, which is no JSON value"),
        ('{"a": -Infinity}', "Line 1: row 1 has -Infinity, which is no JSON value"),
        ('{"a": 1}\n{"a": [1e999]}\n', "Line 2: row 2 has a number that is too large"),
        ('{"a": 1}\n{"a": ' + "1" * 5000 + "}", "Line 2: row 2 has a number with too many digits"),
        ('{"a": 1}\n{"a": "\\ud83d"}', f"Row 2: {HALF}"),
        ('{"a": ["\\udc00"]}', f"Row 1: {HALF}"),
        ('{"\\udc00": 1}', "The title of column 1 holds half of a surrogate pair: no text"),
        ('{"a": 1, "": 2}', "Column 2 has no title"),
        ('{"' + "x" * 256 + '": 2}', "The title of column 1 has 256 characters; at most 255 are allowed"),
    ],
)  # fmt: skip
def test_a_refusal_says_where(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content.encode())
    with pytest.raises(ImportRefused) as refused, json_batches(path) as file:
        list(file)
    assert refused.value.message == sentence


def test_bytes_that_are_no_utf8_are_named_by_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b'{"a": 1}\n{"a": "\xff"}\n')
    with pytest.raises(ImportRefused, match="Line 2 is no UTF-8 text"), json_batches(path) as file:
        list(file)
    path.write_bytes(b'{"a": 1}\n{"a": "\0"}\n')
    with (
        pytest.raises(ImportRefused, match="Line 2: row 2 is no JSON: Invalid control character"),
        json_batches(path) as file,
    ):
        list(file)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks_are_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "file"
    path.write_bytes('[{"a": "é😀"}]'.encode(encoding))
    with json_batches(path) as file:
        assert [batch.arrays[0].to_pylist() for batch in file] == [["é😀"]]


def test_nesting_beyond_the_parser_is_refused(tmp_path: Path) -> None:
    content = b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(ImportRefused, match="Line 1: row 1 is nested more than 200 deep"):
        read(content)


def test_values_are_nested_as_deep_as_readers_follow() -> None:
    def nested(depth: int) -> bytes:
        return b'[{"b": "[{\\n"},\n{"a": ' + b"[" * depth + b"]" * depth + b', "b": "[[[{{{"}]'

    assert len(read(nested(199))[1]) == 2
    with pytest.raises(ImportRefused, match="Line 2: row 2 is nested more than 200 deep"):
        read(nested(200))
    # brackets within a text are no nesting
    assert read(b'{"a": "' + b"[" * 1000 + b'"}')[1] == [{"a": "[" * 1000}]


def test_types_are_kept_and_mixtures_stay_what_they_were() -> None:
    file = JsonFile(
        io.BytesIO(b'[{"i": 1, "m": 1, "t": "x", "b": true, "d": 1.0, "n": null},{"i": -5, "m": 1.5}]'), 0
    )
    (batch,) = file
    assert dict(zip(file.titles, batch.encodings, strict=True)) == {
        "i": "integer", "m": "json", "t": "text", "b": "boolean", "d": "double", "n": "text",
    }  # fmt: skip
    big = read(b'[{"i": 9223372036854775807}, {"i": 9223372036854775808}]')
    assert [row["i"] for row in big[1]] == [2**63 - 1, 2**63]


def test_an_empty_array_has_no_rows_and_an_object_without_keys_is_a_row() -> None:
    assert read(b"[ ]") == ((), [])
    assert read(b"[{}]") == ((), [{}])


def test_999_keys_are_taken_and_1000_are_not() -> None:
    rows = [{f"k{n}": n} for n in range(1000)]
    assert len(read(json.dumps(rows[:999]).encode())[0]) == 999
    with pytest.raises(ImportRefused, match="more than 999 columns"):
        read(json.dumps(rows).encode())


def test_a_value_of_8_mb_is_taken_and_one_byte_more_is_not() -> None:
    longest = "x" * MAX_CELL_BYTES
    assert read(json.dumps([{"a": longest}]).encode())[1] == [{"a": longest}]
    with pytest.raises(ImportRefused, match="Row 2: the value of “a” is over 8388608 bytes"):
        read(json.dumps([{"a": 1}, {"a": longest + "x"}]).encode())
