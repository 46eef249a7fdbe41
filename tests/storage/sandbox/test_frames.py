import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.engine.sandbox.inside.frames import (
    HEADER_BYTES,
    FrameTooLarge,
    decode,
    encode,
    read_frame,
    write_frame,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(json_values | st.text(alphabet=st.characters(categories=["Cs", "Lu"])))
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    frame = encode(value, 1 << 20)
    assert int.from_bytes(frame[:HEADER_BYTES], "big") == len(frame) - HEADER_BYTES
    assert decode(frame[HEADER_BYTES:]) == value


def test_the_cap_holds_both_ways() -> None:
    assert encode("x" * 8, 10)
    with pytest.raises(FrameTooLarge):
        encode("x" * 9, 10)
    read_fd, write_fd = os.pipe()
    try:
        write_frame(write_fd, encode("x" * 8, 10) + encode("x" * 9, 11))
        assert read_frame(read_fd, 10) == b'"xxxxxxxx"'
        with pytest.raises(FrameTooLarge):
            read_frame(read_fd, 10)
    finally:
        os.close(write_fd)
        os.close(read_fd)


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\0\5", b"\0\0\0\5abc"])
def test_a_frame_cut_off_is_none(sent: bytes) -> None:
    read_fd, write_fd = os.pipe()
    os.write(write_fd, sent)
    os.close(write_fd)
    assert read_frame(read_fd, 10) is None
    os.close(read_fd)
