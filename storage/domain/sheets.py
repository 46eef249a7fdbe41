"""Sheets: what one is, where it stands in its table, and whether it was touched since its birth."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from storage.domain.errors import invalid
from storage.domain.manifests import Fill, Manifest

_BORN_ROW_NO = 1
FIRST_SHEET, FIRST_COLUMN = "Sheet 1", "Column A"
EMPTY = ""
"""The value of a cell that nobody wrote."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A live sheet. `head_no` names its current snapshot, `writer_no` the operation that may add rows now."""

    no: int
    id: UUID
    table_no: int
    table_id: UUID
    workspace_id: int
    title: str
    index: int
    row_count: int
    version_count: int
    head_no: int
    next_row_no: int
    writer_no: int | None
    created_at: datetime
    updated_at: datetime


def place_index(index: int | None, sheet_count: int) -> int:
    """Return where a new sheet goes: beyond the end, or None, means the end.

    Raises:
        Invalid: the index is negative.
    """
    if index is not None and index < 0:
        raise invalid("index", "must be 0 or more", "greater_than_equal")
    return sheet_count if index is None else min(index, sheet_count)


def is_untouched(version_count: int, column_titles: list[str], manifest: Manifest) -> bool:
    """Say whether a sheet is still as it was born blank: Column A and one empty row."""
    if version_count != 1 or column_titles != [FIRST_COLUMN] or manifest.row_count != 1:
        return False
    if manifest.parts[0].first_row_no != _BORN_ROW_NO:
        return False
    return all(
        isinstance(source, Fill) and source.value == EMPTY for source in manifest.parts[0].columns.values()
    )
