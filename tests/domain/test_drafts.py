"""The draft of a dataset group: every trigger in every state, and what no order of them can break."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.drafts import (
    TRANSITIONS,
    DraftExists,
    DraftState,
    Follows,
    Move,
    NoDraft,
    Refusal,
    Trigger,
    move_draft,
    plan_move,
)
from storage.domain.errors import Conflict

NONE, OPEN, IMPORTING = DraftState.NONE, DraftState.OPEN, DraftState.IMPORTING
COPYING, COPYING_TO_SAVE, SAVING = DraftState.COPYING, DraftState.COPYING_TO_SAVE, DraftState.SAVING
EXISTS, MISSING, BUSY, LATE = Refusal.EXISTS, Refusal.MISSING, Refusal.BUSY, Refusal.LATE

# state: create, create_from, import, add_rows, save, delete, done, failed
EXPECTED = {
    NONE: (OPEN, COPYING, IMPORTING, MISSING, MISSING, MISSING, LATE, LATE),
    OPEN: (EXISTS, EXISTS, EXISTS, OPEN, SAVING, NONE, LATE, LATE),
    IMPORTING: (EXISTS, EXISTS, EXISTS, BUSY, IMPORTING, NONE, NONE, NONE),
    COPYING: (EXISTS, EXISTS, EXISTS, BUSY, COPYING_TO_SAVE, NONE, OPEN, NONE),
    COPYING_TO_SAVE: (EXISTS, EXISTS, EXISTS, BUSY, COPYING_TO_SAVE, NONE, NONE, NONE),
    SAVING: (EXISTS, EXISTS, EXISTS, BUSY, SAVING, NONE, NONE, OPEN),
}


@pytest.mark.parametrize(("state", "trigger"), list(product(DraftState, Trigger)))
def test_every_trigger_in_every_state(state: DraftState, trigger: Trigger) -> None:
    found = TRANSITIONS[state][trigger]
    wanted = EXPECTED[state][list(Trigger).index(trigger)]
    assert (found.to if isinstance(found, Move) else found) == wanted


@pytest.mark.parametrize(("state", "trigger"), list(product(DraftState, Trigger)))
def test_what_follows_a_move_fits_where_it_leads(state: DraftState, trigger: Trigger) -> None:
    move = TRANSITIONS[state][trigger]
    if isinstance(move, Refusal):
        return
    assert (move.follows in {Follows.VERSION, Follows.REMOVED}) == (move.to is NONE)
    assert (move.follows in {Follows.DRAFT, Follows.DRAFT_AND_WORK}) == (state is NONE)
    works = move.follows in {Follows.WORK, Follows.DRAFT_AND_WORK}
    assert works == (move.to not in {NONE, OPEN} and state in {NONE, OPEN})


@pytest.mark.parametrize(
    ("state", "trigger", "fact"),
    [
        (OPEN, Trigger.CREATE, DraftExists),
        (SAVING, Trigger.IMPORT, DraftExists),
        (NONE, Trigger.SAVE, NoDraft),
        (NONE, Trigger.ADD_ROWS, NoDraft),
        (COPYING, Trigger.ADD_ROWS, Conflict),
    ],
)
def test_a_refusal_is_told_as_a_fact(state: DraftState, trigger: Trigger, fact: type[Exception]) -> None:
    with pytest.raises(fact):
        plan_move(state, trigger)


@given(st.lists(st.sampled_from(Trigger), max_size=30))
def test_whatever_happens_a_draft_becomes_at_most_one_version(triggers: list[Trigger]) -> None:
    state, drafts, ended, at_work = NONE, 0, 0, False
    for trigger in triggers:
        move = move_draft(state, trigger)
        if isinstance(move, Refusal):
            continue
        drafts += move.follows in {Follows.DRAFT, Follows.DRAFT_AND_WORK}
        ended += move.follows in {Follows.VERSION, Follows.REMOVED}
        if move.follows in {Follows.WORK, Follows.DRAFT_AND_WORK}:
            assert not at_work, "work was queued beside work"
        state = move.to
        at_work = state not in {NONE, OPEN}
        assert drafts - ended == (state is not NONE)
