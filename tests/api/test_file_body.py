"""The streamed reader accepts exactly what is valid JSON, and takes the file out wherever it stands."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.file_body import PLACEHOLDER, FileBodyReader
from api.json_body import load_json
from storage.domain.errors import Malformed, PayloadTooLarge

PATH = ("source", "file_content_base64")


def read(body: bytes, piece: int = 1 << 20, most: int = 1 << 20) -> tuple[Any, bytes]:
    file: list[bytes] = []
    reader = FileBodyReader(PATH, file.append, most)
    for at in range(0, len(body), piece):
        reader.feed(body[at : at + piece])
    return reader.finish(), b"".join(file)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('ab"\\{}[]:,é', max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    before=st.dictionaries(st.sampled_from(["title", "a", "file_content_base64"]), json_values, max_size=3),
    after=st.dictionaries(st.sampled_from(["operation_id", "b"]), json_values, max_size=2),
    inner=st.dictionaries(st.sampled_from(["type", "file_name", "source", "x"]), json_values, max_size=3),
    content=st.binary(max_size=60),
    file_first=st.booleans(),
    indent=st.sampled_from([None, 0, 3]),
    ascii_only=st.booleans(),
    piece=st.integers(1, 40),
)
def test_any_body_is_read_as_a_whole_parser_reads_it(
    before: Any,
    after: Any,
    inner: Any,
    content: bytes,
    file_first: bool,
    indent: Any,
    ascii_only: bool,
    piece: int,
) -> None:
    text = base64.b64encode(content).decode()
    source = {"file_content_base64": text, **inner} if file_first else {**inner, "file_content_base64": text}
    whole = {**before, "source": source, **after}
    body = json.dumps(whole, indent=indent, ensure_ascii=ascii_only).encode()
    found, file = read(body, piece)
    assert file == content
    source["file_content_base64"] = PLACEHOLDER if content else ""
    assert found == whole


@given(
    st.lists(
        st.sampled_from(
            [
                b"{",
                b"}",
                b"[",
                b"]",
                b",",
                b":",
                b'"source"',
                b'"file_content_base64"',
                b'"QQ=="',
                b'"a"',
                b"1",
                b'"',
                b"\\",
                b" ",
                b"null",
                b'"type"',
                b"\xff",
            ]
        ),
        max_size=14,
    ),
    st.integers(1, 9),
)
@settings(max_examples=400)
def test_what_is_no_json_is_refused_and_nothing_else(parts: list[bytes], piece: int) -> None:
    body = b"".join(parts)
    try:
        expected = load_json(body)
        json.loads(body, object_pairs_hook=_distinct)
    except (Malformed, ValueError):
        with pytest.raises(Malformed):
            read(body, piece)
        return
    source = expected.get("source") if isinstance(expected, dict) else None
    if isinstance(source, dict) and isinstance(source.get("file_content_base64"), str):
        if source["file_content_base64"] != "QQ==":
            with pytest.raises(Malformed):
                read(body, piece)
            return
        source["file_content_base64"] = PLACEHOLDER
    assert read(body, piece)[0] == expected


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("twice")
    return dict(pairs)


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 7, 1000])
@pytest.mark.parametrize(
    "spelled",
    [b"\\/\\/+\\/", b"\\u002F\\u002f+\\u002f", b"//\\u002b/", b"/\\/\\u002b\\/", b"\\u002f/\\u002B/"],
)
def test_escapes_inside_base64_mean_what_json_says(spelled: bytes, piece: int) -> None:
    body = b'{"source": {"file_content_base64": "' + spelled + b'"}}'
    assert read(body, piece)[1] == base64.b64decode("//+/")


@pytest.mark.parametrize("piece", [1, 4, 1000])
@pytest.mark.parametrize(
    "text",
    [
        "QQ",
        "QQ=",
        "Q===",
        "====",
        "=QQ=",
        "QQ==QQ==",
        "QQ==Q",
        "Q Q=",
        "QQ==\\n",
        "QU\\nI=",
        "-_-_",
        "QQ\\u003",
        "\\\\/AAA",
        'AA\\"A',
        "é",
        "\\u00e9AAA",
        "\\u0100",
        "AAAA\\",
        "AAA\\x",
    ],
)
def test_what_is_no_base64_is_refused(text: str, piece: int) -> None:
    body = f'{{"source": {{"file_content_base64": "{text}"}}}}'.encode()
    with pytest.raises(Malformed):
        read(body, piece)


@given(st.binary(min_size=1, max_size=400), st.integers(1, 50), st.data())
def test_a_body_cut_anywhere_is_refused(content: bytes, piece: int, data: st.DataObject) -> None:
    body = json.dumps(
        {"source": {"file_content_base64": base64.b64encode(content).decode()}, "title": "x"}
    ).encode()
    cut = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(Malformed):
        read(body[:cut], piece)


@pytest.mark.parametrize(
    "body",
    [
        b'{"source": {"file_content_base64": "QQ==", "file_content_base64": "QQ=="}}',
        b'{"source": {"file_content_base64": "QQ=="}, "source": {"file_content_base64": "QQ=="}}',
        b'{"source": {"file_content_base64": "QQ==", "file_content_base64": 1}}',
        b'{"title": "a", "title": "b"}',
        b'{"source": {"file_content_base64": "QQ=="}, "s\\u006furce": 1}',
    ],
)
def test_a_name_that_stands_twice_is_refused(body: bytes) -> None:
    with pytest.raises(Malformed, match="twice"):
        read(body)


def test_an_escaped_name_still_leads_to_the_file() -> None:
    body = b'{"s\\u006furce": {"file\\u005fcontent_base64": "QQ=="}}'
    assert read(body) == ({"source": {"file_content_base64": PLACEHOLDER}}, b"A")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"\xef\xbb\xbf{}",
        b'{"title": NaN}',
        b'{"title": "\\ud800"}',
        b'{"title": "\xff"}',
        b"{} {}",
        b"[" * 100,
        b"}",
        b'{"title": "\x00"}',
    ],
)
def test_a_body_that_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(Malformed):
        read(body)


def test_the_rest_of_a_body_is_bounded() -> None:
    with pytest.raises(PayloadTooLarge):
        read(b'{"title": "' + b"a" * 5000 + b'"}', piece=100, most=1000)
    file = base64.b64encode(bytes(5000))
    assert len(read(b'{"source": {"file_content_base64": "' + file + b'"}}', most=1000)[1]) == 5000
