"""The draft of a dataset group: its states, what may happen to it, and the one table of what follows.

A group has at most one draft. Work (a file or a filter read, rows copied, a save) is a run's; while it is
under way the draft waits for it. What a table of the specification leaves open is decided here: a save while
the rows come is remembered, so that one version comes of it in the end, whatever was asked first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from storage.domain.errors import Conflict, NotFound

DRAFT_NUMBER = -1
"""The version number of a dataset that is a draft."""


class DraftExists(Conflict):
    """The group has a draft, and never two (E23)."""

    code = "draft_exists"


class NoDraft(NotFound):
    """The group has no draft (E24)."""

    code = "no_draft"


class DraftState(StrEnum):
    """What a group's draft does; `NONE`: there is none."""

    NONE = "none"
    OPEN = "open"
    IMPORTING = "importing"
    """Rows come from a file or a filter of requests; a version is made of them at once."""
    COPYING = "copying"
    """Rows come from a version; then it is open."""
    COPYING_TO_SAVE = "copying_to_save"
    SAVING = "saving"


class Trigger(StrEnum):
    """What may happen to a draft: what callers ask for, and how work ends."""

    CREATE = "create"
    CREATE_FROM = "create_from"
    IMPORT = "import"
    ADD_ROWS = "add_rows"
    SAVE = "save"
    DELETE = "delete"
    DONE = "done"
    FAILED = "failed"


class Follows(StrEnum):
    """What happens with a move, in the same transaction."""

    NOTHING = "nothing"
    DRAFT = "draft"
    """A draft is made."""
    WORK = "work"
    """Work on the draft is queued."""
    DRAFT_AND_WORK = "draft_and_work"
    VERSION = "version"
    """The draft becomes the group's next version."""
    REMOVED = "removed"
    """The draft is gone; work on it ends, and publishes nothing."""


class Refusal(StrEnum):
    """Why a trigger is refused; the draft stays as it is."""

    EXISTS = "exists"
    MISSING = "missing"
    BUSY = "busy"
    LATE = "late"
    """The end of work that the draft no longer waits for."""


@dataclass(frozen=True, slots=True)
class Move:
    """What a trigger leads to."""

    to: DraftState
    follows: Follows


_NONE, _OPEN = DraftState.NONE, DraftState.OPEN
_MAKES = (Trigger.CREATE, Trigger.CREATE_FROM, Trigger.IMPORT)
_ENDS = (Trigger.DONE, Trigger.FAILED)


def _with_draft(state: DraftState, moves: Mapping[Trigger, Move | Refusal]) -> dict[Trigger, Move | Refusal]:
    """Fill up what is the same in every state that has a draft."""
    return {
        **dict.fromkeys(_MAKES, Refusal.EXISTS),
        Trigger.ADD_ROWS: Refusal.BUSY,
        Trigger.SAVE: Move(state, Follows.NOTHING),
        Trigger.DELETE: Move(_NONE, Follows.REMOVED),
        **moves,
    }


TRANSITIONS: Mapping[DraftState, Mapping[Trigger, Move | Refusal]] = {
    DraftState.NONE: {
        Trigger.CREATE: Move(_OPEN, Follows.DRAFT),
        Trigger.CREATE_FROM: Move(DraftState.COPYING, Follows.DRAFT_AND_WORK),
        Trigger.IMPORT: Move(DraftState.IMPORTING, Follows.DRAFT_AND_WORK),
        Trigger.ADD_ROWS: Refusal.MISSING,
        Trigger.SAVE: Refusal.MISSING,
        Trigger.DELETE: Refusal.MISSING,
        **dict.fromkeys(_ENDS, Refusal.LATE),
    },
    DraftState.OPEN: _with_draft(
        DraftState.OPEN,
        {
            Trigger.ADD_ROWS: Move(_OPEN, Follows.NOTHING),
            Trigger.SAVE: Move(DraftState.SAVING, Follows.WORK),
            **dict.fromkeys(_ENDS, Refusal.LATE),
        },
    ),
    DraftState.IMPORTING: _with_draft(
        DraftState.IMPORTING,
        {
            Trigger.DONE: Move(_NONE, Follows.VERSION),
            Trigger.FAILED: Move(_NONE, Follows.REMOVED),
        },
    ),
    DraftState.COPYING: _with_draft(
        DraftState.COPYING,
        {
            Trigger.SAVE: Move(DraftState.COPYING_TO_SAVE, Follows.NOTHING),
            Trigger.DONE: Move(_OPEN, Follows.NOTHING),
            Trigger.FAILED: Move(_NONE, Follows.REMOVED),
        },
    ),
    DraftState.COPYING_TO_SAVE: _with_draft(
        DraftState.COPYING_TO_SAVE,
        {
            Trigger.DONE: Move(_NONE, Follows.VERSION),
            Trigger.FAILED: Move(_NONE, Follows.REMOVED),
        },
    ),
    DraftState.SAVING: _with_draft(
        DraftState.SAVING,
        {
            Trigger.DONE: Move(_NONE, Follows.VERSION),
            Trigger.FAILED: Move(_OPEN, Follows.NOTHING),
        },
    ),
}

_BUSY = {
    DraftState.IMPORTING: "its file or filter is being read",
    DraftState.COPYING: "its rows are being copied",
    DraftState.COPYING_TO_SAVE: "its rows are being copied, and then saved",
    DraftState.SAVING: "it is being saved",
}


def move_draft(state: DraftState, trigger: Trigger) -> Move | Refusal:
    """Look up what a trigger leads to."""
    return TRANSITIONS[state][trigger]


def plan_move(state: DraftState, trigger: Trigger) -> Move:
    """As `move_draft`, for what a caller asks for.

    Raises:
        DraftExists: a second draft was asked for.
        NoDraft: there is none.
        Conflict: work on it is under way.
    """
    move = move_draft(state, trigger)
    if isinstance(move, Move):
        return move
    if move is Refusal.EXISTS:
        raise DraftExists("The dataset group has a draft: save or delete it first")
    if move is Refusal.MISSING:
        raise NoDraft("The dataset group has no draft")
    if move is Refusal.BUSY:
        raise Conflict(f"The draft cannot be changed now: {_BUSY[state]}")
    raise ValueError(f"{trigger} is nothing that a caller asks for")
