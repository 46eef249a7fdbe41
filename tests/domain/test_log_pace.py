"""A burst is told by how many logs came in the last seconds, however they are spread over files."""

import pytest

from storage.domain.log_pace import (
    FLUSH_STEPS_BACK,
    MOST_HELD_BACK_S,
    POURING_ROWS_S,
    WINDOW_US,
    Arrived,
    flush_steps_back,
    held_back_s,
    logs_pour_in,
    needs_flush,
)

NOW = 10 * WINDOW_US
MANY = int(POURING_ROWS_S * WINDOW_US / 1e6)


def test_many_logs_of_the_window_are_a_burst_and_old_ones_are_not() -> None:
    assert logs_pour_in([Arrived(MANY, NOW - WINDOW_US, NOW)], NOW)
    assert not logs_pour_in([Arrived(MANY - 1, NOW - WINDOW_US, NOW)], NOW)
    assert not logs_pour_in([Arrived(10 * MANY, 0, NOW - WINDOW_US)], NOW)
    assert not logs_pour_in([], NOW)


def test_of_a_file_that_began_earlier_only_the_late_part_counts() -> None:
    assert logs_pour_in([Arrived(2 * MANY, NOW - 2 * WINDOW_US, NOW)], NOW)
    assert not logs_pour_in([Arrived(MANY, NOW - 2 * WINDOW_US, NOW)], NOW)


def test_a_flush_is_needed_when_much_waits_or_will_soon() -> None:
    second = 1_000_000
    assert needs_flush(3_000, 3600 * second, 8_000)
    assert not needs_flush(2_000, 30 * second, 8_000)
    assert needs_flush(2_000, second, 8_000)
    assert not needs_flush(999, 0, 8_000)


def test_a_flush_lets_others_go_first_as_long_as_it_keeps_pace() -> None:
    assert flush_steps_back(3_999, 8_000) == FLUSH_STEPS_BACK
    assert flush_steps_back(4_000, 8_000) == 0


def test_callers_wait_for_a_flush_that_falls_behind_and_for_none_that_does_not_come() -> None:
    assert held_back_s(6_000, 8_000) == 0
    assert held_back_s(7_000, 8_000) == pytest.approx(MOST_HELD_BACK_S / 2)
    assert held_back_s(8_000, 8_000) == held_back_s(16_000, 8_000) == MOST_HELD_BACK_S
    assert held_back_s(16_001, 8_000) == 0
