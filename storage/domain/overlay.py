"""The overlay of a sheet: what was written to single cells since its segments were, as immutable patches.

A snapshot is a manifest and the patches on top of it, oldest first. A patch is a value: a commit adds one,
or merges the last ones with its own into a new one, and changes none. So a version costs its patches, a
restore names them again, and what reads an older snapshot never sees them change.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from storage.domain.cells import COMPLETED, CellState, CellStatus, restated

FOLD_CELLS = 10_000
FOLD_BYTES = 16 * 1024 * 1024
"""An overlay of more cells or bytes than this is folded into segments by the next upkeep."""
_MERGED_BYTES = 256 * 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Kept(Enum):
    """Instead of a value: the one that is there stays, only the state is new."""

    KEPT = "kept"


KEPT = Kept.KEPT


@dataclass(frozen=True, slots=True)
class Entry:
    """What was written to a cell.

    With KEPT value and time stay, and of the state only status and error are new (`cells.restated`).
    """

    value: Any
    written_at: datetime
    state: CellState = COMPLETED


@dataclass(frozen=True, slots=True)
class Restated:
    """Status and error for all rows of a column below a row number, the sheet's counter at that time."""

    state: CellState
    end_row_no: int


@dataclass(frozen=True, slots=True)
class Patch:
    """What one commit wrote: entries by column and row number; and columns of which all cells changed state.

    A column's new state comes first, its entries on top.
    """

    cells: Mapping[int, Mapping[int, Entry]] = field(default_factory=dict)
    restated: Mapping[int, Restated] = field(default_factory=dict)
    # counted once: a patch may have entries of thousands of columns, and each commit asks
    _cell_count: int = field(default=-1, init=False, compare=False, repr=False)

    @property
    def cell_count(self) -> int:
        if self._cell_count < 0:
            object.__setattr__(self, "_cell_count", sum(map(len, self.cells.values())))
        return self._cell_count

    def __bool__(self) -> bool:
        """Whether it says anything."""
        return bool(self.cells or self.restated)


@dataclass(frozen=True, slots=True)
class NumberedPatch:
    """A patch as it is kept: its number and how many bytes it takes."""

    no: int
    patch: Patch
    bytes: int


@dataclass(frozen=True, slots=True)
class Overlay:
    """The patches of a snapshot, oldest first."""

    patches: tuple[NumberedPatch, ...] = ()

    @property
    def cell_count(self) -> int:
        return sum(one.patch.cell_count for one in self.patches)

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.patches)

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(one.no for one in self.patches)

    def __bool__(self) -> bool:
        return bool(self.patches)


@dataclass(frozen=True, slots=True)
class Note:
    """What a segment keeps of a cell beside its value, where the segment's own facts do not hold for it.

    `plain`: it is shown as any JSON value, though its field holds messages.
    """

    written_at: datetime | None = None
    state: CellState = COMPLETED
    plain: bool = False

    def to_json(self) -> dict[str, Any] | None:
        """Spell what there is to say; None for nothing."""
        spelled: dict[str, Any] = {}
        if self.written_at is not None:
            spelled["at"] = to_micros(self.written_at)
        if self.state != COMPLETED:
            spelled["state"] = self.state.to_json()
        if self.plain:
            spelled["plain"] = True
        return spelled or None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Note":
        at = value.get("at")
        return cls(
            None if at is None else from_micros(at),
            CellState.from_json(value.get("state", {})),
            value.get("plain", False),
        )


def note_status(spelled: str | None) -> CellStatus:
    """Return the status that a note, as it is kept, gives its cell."""
    if spelled is None:
        return COMPLETED.status
    return Note.from_json(json.loads(spelled)).state.status


def to_micros(at: datetime) -> int:
    """Return microseconds since 1970."""
    return (at - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    return _EPOCH + micros * _MICROSECOND


def merged(older: Patch, newer: Patch) -> Patch:
    """Return the patch that does what one and then another do."""
    cells = {no: dict(entries) for no, entries in older.cells.items()}
    for no, one in newer.restated.items():
        cells[no] = {row: _with_state(e, row, one) for row, e in cells.get(no, {}).items()}
    for no, entries in newer.cells.items():
        held = cells.setdefault(no, {})
        for row, entry in entries.items():
            held[row] = laid(held.get(row), entry)
    return Patch(
        {no: entries for no, entries in cells.items() if entries}, {**older.restated, **newer.restated}
    )


def laid(under: Entry | None, entry: Entry) -> Entry:
    """Return what a cell holds once an entry lies on another."""
    if entry.value is KEPT and under is not None:
        return Entry(under.value, under.written_at, restated(under.state, entry.state))
    return entry


def _with_state(entry: Entry, row_no: int, changed: Restated) -> Entry:
    if row_no >= changed.end_row_no:
        return entry
    return Entry(entry.value, entry.written_at, restated(entry.state, changed.state))


def count_to_merge(patches: Sequence[NumberedPatch], cell_count: int, size: int) -> int:
    """Return how many of the last patches a new one of that many cells and bytes takes in.

    Each kept patch is larger than all that follow it together, so that there are few of them and a cell is
    written anew only about log2 times; patches of large values are left alone.
    """
    taken = 0
    for one in reversed(patches):
        if one.patch.cell_count > cell_count or one.bytes + size > _MERGED_BYTES:
            break
        cell_count += one.patch.cell_count
        size += one.bytes
        taken += 1
    return taken


def needs_fold(cell_count: int, size: int) -> bool:
    """Say whether an overlay has outgrown the catalog."""
    return cell_count > FOLD_CELLS or size > FOLD_BYTES


def entries_of(overlay: Overlay) -> dict[int, dict[int, Entry]]:
    """Return what the patches leave in single cells, by column and row number."""
    held = Patch()
    for one in overlay.patches:
        held = merged(held, one.patch)
    return {no: dict(entries) for no, entries in held.cells.items()}


def entries_within(patch: Patch, column_no: int, first: int, end: int) -> Iterator[tuple[int, Entry]]:
    """Yield a patch's entries of a column with row numbers from one up to another."""
    entries = patch.cells.get(column_no)
    if not entries:
        return
    if len(entries) < end - first:
        yield from ((row, entry) for row, entry in entries.items() if first <= row < end)
    else:
        yield from ((row, entries[row]) for row in range(first, end) if row in entries)
