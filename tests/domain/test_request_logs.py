"""Rules of logged requests."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import Invalid
from storage.domain.request_logs import (
    STATUSES,
    STATUSES_OF_ERROR_TYPE,
    blueprint,
    check_block,
    check_exchange,
    check_finite,
    check_idempotency_key,
    check_message,
    from_us,
    iso_us,
    parse_moment_us,
    to_us,
)

zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
# a day from the ends: a zone may move a moment beyond the years that exist
first, last = (
    end.replace(tzinfo=None) for end in (from_us(-62_135_500_000_000_000), from_us(253_402_200_000_000_000))
)
naive = st.datetimes(first, last)
moments = st.builds(lambda moment, zone: moment.replace(tzinfo=zone), naive, zones)


@given(moments)
def test_a_moment_in_any_zone_is_read_as_the_same_moment_in_utc(moment: datetime) -> None:
    assert from_us(parse_moment_us(moment.isoformat())) == moment
    assert parse_moment_us(iso_us(to_us(moment))) == to_us(moment)


@given(naive)
def test_a_moment_without_zone_is_utc(moment: datetime) -> None:
    assert from_us(parse_moment_us(moment.isoformat())) == moment.replace(tzinfo=UTC)


@given(st.integers(-60_000_000_000, 20_000_000_000))
def test_numbers_up_to_2e10_are_seconds(seconds: int) -> None:
    assert parse_moment_us(seconds) == seconds * 1_000_000


@given(st.integers(20_000_000_001, 250_000_000_000_000))
def test_numbers_above_2e10_are_milliseconds(milliseconds: int) -> None:
    assert abs(parse_moment_us(milliseconds) - milliseconds * 1000) <= 32  # of a float's precision


@given(st.one_of(st.text(), st.floats(), st.integers()))
def test_anything_else_is_refused_with_a_sentence(value: object) -> None:
    said = ""
    try:
        parse_moment_us(value)  # type: ignore[arg-type]
    except ValueError as error:
        said = str(error)
    assert said == "" or "time" in said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2024-02-30T00:00:00",
        "2024-01-01T25:00:00",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
    ],
)
def test_text_that_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="time"):
        parse_moment_us(text)


def test_an_error_type_goes_with_its_statuses_and_no_other() -> None:
    for error_type, allowed in STATUSES_OF_ERROR_TYPE.items():
        for status in STATUSES:
            if status in allowed:
                check_exchange(status=status, error_type=error_type, start_us=1, end_us=1)
            else:
                with pytest.raises(Invalid, match=error_type):
                    check_exchange(status=status, error_type=error_type, start_us=1, end_us=1)
    assert {"SUCCESS"} & frozenset[str]().union(*STATUSES_OF_ERROR_TYPE.values()) == set()


def test_an_exchange_does_not_end_before_it_starts() -> None:
    check_exchange(status="SUCCESS", error_type=None, start_us=5, end_us=5)
    with pytest.raises(Invalid, match="request_end_time"):
        check_exchange(status="SUCCESS", error_type=None, start_us=5, end_us=4)


def test_only_an_assistant_that_calls_tools_may_leave_content_null() -> None:
    calls = [{"id": "1"}]
    assert check_message({"role": "assistant", "content": None, "tool_calls": calls}) == []
    assert check_message({"role": "assistant", "function_call": {"name": "f"}}) == []
    for message in (
        {"role": "user", "content": None, "tool_calls": calls},
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant"},
    ):
        with pytest.raises(ValueError, match="content"):
            check_message(message)


def test_a_text_block_has_text() -> None:
    check_block({"type": "text", "text": ""})
    check_block({"type": "image_url"})
    for block in ({"type": "text"}, {"type": "text", "text": 1}):
        with pytest.raises(ValueError, match="text"):
            check_block(block)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(json_values, st.sampled_from([float("inf"), float("-inf"), float("nan")]))
def test_an_infinite_number_is_found_where_it_stands(value: object, infinite: float) -> None:
    assert check_finite(value) is None
    found = check_finite({"a": [value, {"b": infinite}]})
    assert found is not None
    assert found.loc == ("body", "a", "1", "b")


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=255))
def test_visible_idempotency_keys_are_kept_as_they_are(key: str) -> None:
    assert check_idempotency_key(key) == key


def test_the_blueprint_is_input_then_output_and_null_when_they_differ() -> None:
    log = {"provider": "p", "model": "m", "parameters": {}, "api_type": None}
    first, second = {"role": "user", "content": []}, {"role": "assistant", "content": []}
    chat = {"type": "chat", "messages": [first], "tools": [1]}
    made = blueprint({**log, "input": chat, "output": {"type": "chat", "messages": [second]}})
    assert made is not None
    assert made["prompt_template"] == {
        "type": "chat",
        "messages": [first, second],
        "tools": [1],
        "input_variables": [],
    }
    assert made["metadata"] == {"model": {"provider": "p", "name": "m", "parameters": {}}}
    assert blueprint({**log, "input": chat, "output": {"type": "completion", "content": []}}) is None
