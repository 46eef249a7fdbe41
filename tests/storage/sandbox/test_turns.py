"""Whose turn it is, as a rule without processes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.engine.sandbox.kinds import JINJA2
from storage.engine.sandbox.turns import Ticket, Turns


def nothing_idle(*_: object) -> bool:
    return False


def test_a_full_pool_serves_in_the_order_of_asking() -> None:
    turns = Turns(share=1)
    first, second = Ticket(JINJA2, 1), Ticket(JINJA2, 2)
    turns.wait(first)
    turns.wait(second)
    assert turns.may_go(first, full=True, has_idle=nothing_idle)
    assert not turns.may_go(second, full=True, has_idle=nothing_idle)
    # while there is room nobody stands in another tenant's way
    assert turns.may_go(second, full=False, has_idle=nothing_idle)
    turns.serve(first, 0.0)
    assert turns.may_go(second, full=True, has_idle=nothing_idle)


def test_one_that_cannot_go_holds_nobody_up() -> None:
    turns = Turns(share=1)
    running, again, other = Ticket(JINJA2, 1), Ticket(JINJA2, 1), Ticket(JINJA2, 2)
    turns.wait(running)
    turns.serve(running, 0.0)
    turns.wait(again)
    turns.wait(other)
    assert not turns.may_go(again, full=True, has_idle=nothing_idle)
    assert turns.may_go(other, full=True, has_idle=nothing_idle)


@pytest.mark.parametrize(
    ("waiting", "busy_for_s", "crowded"), [(4, 1.0, True), (3, 1.0, False), (4, 0.1, False)]
)
def test_a_crowd_is_many_behind_slow_work_of_their_own(
    waiting: int, busy_for_s: float, crowded: bool
) -> None:
    turns = Turns(share=2)
    for _ in range(2):
        ticket = Ticket(JINJA2, 1)
        turns.wait(ticket)
        turns.serve(ticket, 10.0)
    for _ in range(waiting):
        turns.wait(Ticket(JINJA2, 1))
    assert turns.is_crowded(1, 10.0 + busy_for_s) is crowded
    assert not turns.is_crowded(2, 20.0)


@given(
    share=st.integers(1, 3), tenants=st.lists(st.integers(1, 4), min_size=1, max_size=12), full=st.booleans()
)
def test_whoever_waits_somebody_below_their_share_may_go_and_nobody_above_it(
    share: int, tenants: list[int], full: bool
) -> None:
    turns = Turns(share)
    tickets = [Ticket(JINJA2, tenant) for tenant in tenants]
    for ticket in tickets:
        turns.wait(ticket)
    left = list(tickets)
    while left:
        may = [ticket for ticket in left if turns.may_go(ticket, full=full, has_idle=lambda *_: True)]
        below = [ticket for ticket in left if turns.busy(ticket.tenant) < share]
        assert bool(may) == bool(below)
        assert set(may) <= set(below)
        if not may:
            break
        if full:
            assert may == below[:1]
        turns.serve(may[0], 0.0)
        left.remove(may[0])
    assert all(turns.busy(tenant) <= share for tenant in tenants)
