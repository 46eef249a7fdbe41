"""New rows: where their cells stand before anybody wrote them, and which values came with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from storage.domain.cells import STALE, check_value
from storage.domain.columns import TEXT, Column
from storage.domain.errors import Invalid, Problem, WrongColumnType, invalid
from storage.domain.manifests import Fill, Source
from storage.domain.sheets import EMPTY

MOST_ROWS = 1_000
LARGE_CELLS = 1_000
"""More values than this, written at once, become a segment; fewer lie in the overlay."""


@dataclass(frozen=True, slots=True)
class RowsAdded:
    """Where new rows stand, how many rows the sheet has now, and its version number."""

    first_index: int
    count: int
    row_count: int
    version_number: int


def count_rows(count: int | None, values: Sequence[Any] | None) -> int:
    """Return how many rows are asked for: a count, or as many as there are values; one without both.

    Raises:
        Invalid: more than 1,000, none, or fewer than there are values.
    """
    given = len(values or ())
    rows = count if count is not None else given if values is not None else 1
    if not 1 <= rows <= MOST_ROWS:
        raise invalid("count" if count is not None else "values", f"must be 1 to {MOST_ROWS} rows")
    if rows < given:
        raise invalid("count", f"is {rows}, but values are given for {given} rows")
    return rows


def blank_layout(columns: Sequence[Column]) -> dict[int, Source]:
    """Return the sources of rows that nobody wrote: empty text, stale computed cells."""
    empty, stale = Fill(EMPTY), Fill(None, None, STALE)
    return {column.no: empty if column.type == TEXT else stale for column in columns}


def check_values(
    columns: Sequence[Column], values: Sequence[Mapping[UUID, Any]]
) -> dict[int, dict[int, Any]]:
    """Return values by column number and place among the new rows.

    Raises:
        Invalid: a column is not of the sheet, or a value is too large.
        WrongColumnType: a column is computed.
    """
    by_id = {column.id: column for column in columns}
    found: dict[int, dict[int, Any]] = {}
    for at, row in enumerate(values):
        for column_id, value in row.items():
            column = by_id.get(column_id)
            if column is None:
                problem = Problem(("body", "values", str(at), str(column_id)), "is no column of the sheet")
                raise Invalid(problem)
            if column.type != TEXT:
                raise WrongColumnType(f"{column.title} is computed: only text cells are written")
            check_value(value, f"values.{at}.{column_id}")
            found.setdefault(column.no, {})[at] = value
    return found
