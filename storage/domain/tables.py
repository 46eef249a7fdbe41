"""Tables: what one is, and the title of one that was given none."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from uuid import UUID


class Unchanged(Enum):
    """Instead of a value: leave what is there, where None is a value too."""

    UNCHANGED = "unchanged"


UNTITLED = "Untitled Table"


@dataclass(frozen=True, slots=True)
class Table:
    """A live table with the rows of each of its sheets, by sheet id in display order."""

    no: int
    id: UUID
    workspace_id: int
    title: str
    folder_id: int | None
    created_at: datetime
    updated_at: datetime
    sheet_row_counts: Mapping[UUID, int]

    @property
    def sheet_count(self) -> int:
        return len(self.sheet_row_counts)


def free_title(base: str, guess: int, is_taken: Callable[[str], bool]) -> str:
    """Return `base`, or `base 2`, `base 3`, ...: the first that is free, looking from number `guess` on."""
    number = max(guess, 1)
    while is_taken(title := base if number == 1 else f"{base} {number}"):
        number += 1
    return title
