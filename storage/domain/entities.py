"""What lies in folders: the kinds of entity, what a move needs, what a folder's contents tell of each."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

MOST_MOVED = 1_000


class EntityType(StrEnum):
    """Kinds in the order in which a folder's contents are listed."""

    FOLDER = "FOLDER"
    PROMPT = "PROMPT"
    SNIPPET = "SNIPPET"
    WORKFLOW = "WORKFLOW"
    DATASET = "DATASET"
    REPORT = "REPORT"
    AB_TEST = "AB_TEST"
    INPUT_VARIABLE_SET = "INPUT_VARIABLE_SET"
    TABLE = "TABLE"

    @property
    def kind(self) -> str:
        """Its word in scopes and audit entries."""
        return self.value.lower()

    @property
    def scope(self) -> str:
        """What a key needs to move one."""
        return f"write:{self.kind}"


@dataclass(frozen=True, slots=True)
class EntityRef:
    """One entity by kind and id (E28)."""

    type: EntityType
    id: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One entity in a folder; `no` orders those of a kind by age."""

    type: EntityType
    no: int
    id: int | UUID
    name: str
    folder_id: int | None
    created_at: datetime
    updated_at: datetime


LISTED = tuple(kind for kind in EntityType if kind is not EntityType.SNIPPET)
"""What a folder's contents are read as: a snippet is a prompt, and listed as one unless asked for."""

_KINDS = tuple(EntityType)
# a number of the catalog has 63 bits
_RANK_SHIFT = 64


def place_in_list(kind: EntityType, no: int) -> int:
    """Where an entity stands in a folder's contents: by kind, then by age."""
    return (_KINDS.index(kind) << _RANK_SHIFT) | no


def kinds_from(
    position: int | None, wanted: Collection[EntityType], *, descending: bool
) -> list[tuple[EntityType, int | None]]:
    """The kinds to read beyond a position, in order, each with the number to read on from."""
    kinds = [(rank, kind) for rank, kind in enumerate(_KINDS) if kind in wanted]
    if descending:
        kinds.reverse()
    if position is None:
        return [(kind, None) for _, kind in kinds]
    at, no = position >> _RANK_SHIFT, position & ((1 << _RANK_SHIFT) - 1)
    beyond = [(rank, kind) for rank, kind in kinds if (rank <= at if descending else rank >= at)]
    return [(kind, no if rank == at else None) for rank, kind in beyond]


def kinds_asked_for(wanted: Collection[EntityType]) -> list[EntityType]:
    """The kinds to list, each entity once; none asked for means all."""
    if not wanted:
        return list(LISTED)
    once = set(wanted) - ({EntityType.SNIPPET} if EntityType.PROMPT in wanted else set())
    return [kind for kind in _KINDS if kind in once]
