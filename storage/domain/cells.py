"""Cells: what a reader sees of one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from storage.domain.errors import invalid

MAX_CELL_BYTES = 8 * 1024 * 1024
_MOST_BYTES_A_CHARACTER = 4

CellStatus = Literal["stale", "queued", "running", "completed", "failed"]


@dataclass(frozen=True, slots=True)
class CellState:
    """What a computed cell has beside its value; a text cell is COMPLETED and has nothing else.

    `error` is a code and `error_message` a sentence; `input_hash` is of what the value was computed from.
    """

    status: CellStatus = "completed"
    cached: bool = False
    error: str | None = None
    error_message: str | None = None
    input_hash: str | None = None
    request_metrics: Mapping[str, Any] | None = None
    execution_id: str | None = None
    last_computed_version: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Spell what differs from COMPLETED."""
        held = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in held.items() if value != getattr(COMPLETED, name)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "CellState":
        return cls(**value) if value else COMPLETED


COMPLETED = CellState()
STALE = CellState("stale")


def restated(under: CellState, state: CellState) -> CellState:
    """Return what becomes of a cell whose value stays: how it was computed is not forgotten."""
    return replace(under, status=state.status, error=state.error, error_message=state.error_message)


@dataclass(frozen=True, slots=True)
class Cell:
    """One value, and as it is shown; `row_index` is its place now, `id` stays."""

    id: UUID
    column_id: UUID
    row_index: int
    value: Any
    display_value: str | None
    updated_at: datetime
    state: CellState = COMPLETED


def display_value(value: Any) -> str | None:
    """Return the string itself, else compact JSON; None for null."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class CellEdit:
    """A cell as it was written, how many cells that made stale, and the sheet's current version number."""

    cell: Cell
    stale_count: int
    version_number: int


def check_value(value: Any, loc: str) -> None:
    """Raise Invalid when a value is larger than a cell may be; `loc` is its path below the body."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) * _MOST_BYTES_A_CHARACTER > MAX_CELL_BYTES and len(text.encode()) > MAX_CELL_BYTES:
        raise invalid(loc, f"has more than {MAX_CELL_BYTES} bytes", "too_long")


def same_value(one: Any, other: Any) -> bool:
    """Say whether two JSON values are the same, of the same types: 1 is neither 1.0 nor true."""
    return one == other and display_value(one) == display_value(other) and type(one) is type(other)
