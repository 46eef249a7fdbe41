"""Columns: what one is, and which columns an import needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from storage.domain.column_types import TEXT, runner_of
from storage.domain.column_types.binding import Edge
from storage.domain.imports import ImportRefused
from storage.domain.ranks import RANK_GAP, ranks_after

MOST_COLUMNS = 5_000
LONGEST_TITLE = 255


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `no` is unique in the installation and part of every cell id of the column.

    `config` names other columns by id; `dependencies` are the columns that it reads, as the wire has them.
    """

    no: int
    id: UUID
    title: str
    type: str
    config: Mapping[str, Any]
    position_rank: int
    is_output_column: bool
    dependencies: Sequence[Edge] = ()

    @property
    def computed(self) -> bool:
        return self.type != TEXT

    @property
    def runner(self) -> str:
        """What computes it: its type, but for scores that ask a model and prompts that ask none."""
        return runner_of(self.type, self.config)

    @property
    def source_ids(self) -> tuple[UUID, ...]:
        """The columns that it reads, each once; some may be gone."""
        return tuple(dict.fromkeys(UUID(edge["column_id"]) for edge in self.dependencies))


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


__all__ = ["LONGEST_TITLE", "MOST_COLUMNS", "RANK_GAP", "TEXT", "Column", "match_titles", "ranks_after"]
