"""When a flush is due."""

from hypothesis import given
from hypothesis import strategies as st

from storage.domain.log_flush import TailState, plan_flush

sizes = st.integers(0, 10**9)


def due(tail: TailState, now_us: int) -> tuple[bool, bool]:
    plan = plan_flush(tail, now_us=now_us, flush_bytes=64_000_000, flush_after_s=30)
    assert plan.reason
    return plan.flush, plan.publish


@given(sizes, st.integers(0, 10**12), st.booleans())
def test_a_flush_is_due_by_size_or_by_age_and_publishes(size: int, age_us: int, behind: bool) -> None:
    flush, publish = due(TailState(size, 0, behind), age_us)
    assert flush == (size >= 64_000_000 or age_us >= 30_000_000)
    assert publish == (flush or behind)


def test_an_empty_tail_is_not_flushed_but_views_behind_are_published() -> None:
    assert due(TailState(0, None), 10**12) == (False, False)
    assert due(TailState(0, None, views_behind=True), 0) == (False, True)


def test_a_clock_that_went_back_does_not_flush() -> None:
    assert due(TailState(1, 10**12), 0) == (False, False)


def test_nothing_is_due_while_another_flush_holds_the_tail() -> None:
    tail = TailState(10**9, 0, views_behind=True)
    plan = plan_flush(tail, now_us=10**12, flush_bytes=1, flush_after_s=1, at_work=True)
    assert not plan.due
    assert "another flush" in plan.reason
