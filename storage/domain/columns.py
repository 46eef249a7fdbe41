"""Columns: what one is, its order in the sheet, and which columns an import needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from storage.domain.imports import ImportRefused

TEXT = "text"
MOST_COLUMNS = 5_000
RANK_GAP = 1_024
LONGEST_TITLE = 255


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `no` is unique in the installation and part of every cell id of the column."""

    no: int
    id: UUID
    title: str
    type: str
    config: Mapping[str, Any]
    position_rank: int
    is_output_column: bool


def ranks_after(last: int, count: int) -> list[int]:
    """Return the ranks of columns added at the end, with gaps for later ones between."""
    return [last + RANK_GAP * step for step in range(1, count + 1)]


def match_titles(existing: Sequence[Column], titles: Sequence[str]) -> list[Column | None]:
    """Return the column that each imported title means; None where it becomes a new one.

    Raises:
        ImportRefused: a title is that of a computed column, or the sheet would have too many columns.
    """
    by_title = {column.title: column for column in existing}
    found = [by_title.get(title) for title in titles]
    for column in found:
        if column is not None and column.type != TEXT:
            raise ImportRefused(f"Column {column.title} is computed: an import cannot write it")
    if len(existing) + found.count(None) > MOST_COLUMNS:
        raise ImportRefused(f"The sheet would have more than {MOST_COLUMNS} columns")
    return found
