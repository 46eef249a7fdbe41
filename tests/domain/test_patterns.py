"""Regular expressions of tenants: refused in words, and measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import InvalidConfig
from storage.domain.patterns import check_pattern, size_of_pattern


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "missing \\)"),
        ("a{99999999999}", "too large"),
        ("(" * 5000 + ")" * 5000, "nested too deeply"),
        ("a" * 10_001, "at most 10000 characters"),
    ],
)
def test_what_is_no_pattern_is_refused_in_words(pattern: str, words: str) -> None:
    with pytest.raises(InvalidConfig, match=f"config.target: .*{words}"):
        check_pattern(pattern, "config.target")


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        ("abc", 3),
        ("", 1),
        ("(ab){5}", 10),
        ("((a{3}b){4}c){2}", 34),
        (r"a{2,}\{5}", 5),
        ("a{3,7}|b*", 8),
        (r"[]\]a{9}]{2}x", 21),
        (r"\d{4}-\d{2}", 61),
        ("a{0}", 1),
        ("(" * 20 + "a" + "){1000}" * 20, 10**12),
    ],
)
def test_what_is_repeated_counts_as_often(pattern: str, size: int) -> None:
    assert size_of_pattern(pattern) == size


@given(st.text("ab(){}[],\\0123456789*+?^d.", max_size=40))
def test_every_text_has_a_size(pattern: str) -> None:
    assert 1 <= size_of_pattern(pattern) <= 10**12
