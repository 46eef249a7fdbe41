"""A burst is told by how many logs came in the last seconds, however they are spread over files."""

from storage.domain.log_pace import POURING_ROWS_S, WINDOW_US, Arrived, logs_pour_in

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
