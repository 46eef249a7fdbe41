"""Cells: what a reader sees of one."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a text column, and as it is shown; `row_index` is its place now, `id` stays."""

    id: UUID
    column_id: UUID
    row_index: int
    value: Any
    display_value: str | None
    updated_at: datetime


def display_value(value: Any) -> str | None:
    """Return the string itself, else compact JSON; None for null."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
