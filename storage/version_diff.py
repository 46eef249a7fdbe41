"""Two versions of a sheet compared: from their manifests where these share segments, by values elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from storage.domain.cells import same_value
from storage.domain.columns import TEXT, Column
from storage.domain.ids import CellAddress, cell_id
from storage.domain.keys import Principal
from storage.domain.version_changes import (
    CellChange,
    SheetDiff,
    column_changes,
    row_changes,
    stretches_to_compare,
    written_places,
)
from storage.domain.versions import Version
from storage.engine.sheet_rows import Written, read_columns
from storage.engine.snapshots import Snapshot
from storage.sheets import require_sheet
from storage.store import Store
from storage.versions import require_version

MOST_CHANGES = 1_000
_MOST_LISTED_BYTES = 32 * 1024 * 1024


def get_version(
    store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, version: int | UUID
) -> Version:
    """Return one version whole, by number or id: written cells as they stood before and after.

    Raises:
        NotFound: no such sheet or version.
    """
    with store.catalog.read() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        found = require_version(connection, sheet.no, version)
        if not any(delta["type"] in _CELL_DELTAS for delta in found.deltas):
            return found
        before = require_version(connection, sheet.no, found.version_number - 1)
        old = store.snapshots.get(connection, before.snapshot_no)
        new = store.snapshots.get(connection, found.snapshot_no)
    changes = _compare_cells(store, old, new, _common(before, found))
    return replace(found, deltas=_told(found, changes.listed))


_CELL_DELTAS = {"cells_updated": True, "cells_recalculated": False}


def _told(version: Version, changes: Sequence[CellChange]) -> list[dict[str, object]]:
    """Spell the deltas of a version with the values of its cells before and after."""
    types = {column.id: column.type for column in version.structure.columns} if version.structure else {}
    told = []
    for delta in version.deltas:
        is_text = _CELL_DELTAS.get(delta["type"])
        if is_text is None:
            told.append(dict(delta))
            continue
        own = [one for one in changes if (types[one.column_id] == TEXT) == is_text]
        told.append(
            {
                "type": delta["type"],
                "ids": [str(one.cell_id) for one in own],
                "before": [one.before for one in own],
                "after": [one.after for one in own],
            }
        )
    return told


def diff_versions(
    store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, before: int | UUID, after: int | UUID
) -> SheetDiff:
    """Say what differs between two versions: columns, rows, and cells of the rows and columns of both.

    Raises:
        NotFound: no such sheet or version.
    """
    with store.catalog.read() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        one, other = (require_version(connection, sheet.no, wanted) for wanted in (before, after))
        old = store.snapshots.get(connection, one.snapshot_no)
        new = store.snapshots.get(connection, other.snapshot_no)
    columns = [version.structure.columns if version.structure else () for version in (one, other)]
    added, removed, changed = column_changes(*columns)
    rows = row_changes(old.manifest, new.manifest)
    cells = _compare_cells(store, old, new, _common(one, other))
    return SheetDiff(added, removed, changed, rows, cells.count, cells.listed)


def _common(before: Version, after: Version) -> list[Column]:
    old = {column.no for column in before.structure.columns} if before.structure else set()
    return [column for column in after.structure.columns if column.no in old] if after.structure else []


@dataclass(slots=True)
class _Changes:
    count: int = 0
    listed: list[CellChange] = field(default_factory=list)
    bytes: int = 0

    def add(self, change: CellChange, size: int) -> None:
        self.count += 1
        self.bytes += size
        if len(self.listed) < MOST_CHANGES and self.bytes <= _MOST_LISTED_BYTES:
            self.listed.append(change)


def _compare_cells(store: Store, old: Snapshot, new: Snapshot, columns: Sequence[Column]) -> _Changes:
    changes = _Changes()
    by_no = {column.no: column for column in columns}
    written = written_places(old.overlay, new.overlay)
    for stretch in stretches_to_compare(old.manifest, new.manifest, written, list(by_no)):
        first, nos = stretch.first_row_no, stretch.column_nos
        count = stretch.end_row_no - first
        at, was_at = new.manifest.index_from(first), old.manifest.index_from(first)
        befores = read_columns(store.segments, old, nos, was_at, count)
        afters = read_columns(store.segments, new, nos, at, count)
        for no, was, now in zip(nos, befores, afters, strict=True):
            for step, (one, other) in enumerate(zip(was, now, strict=True)):
                if not same_value(one[0], other[0]):
                    address = CellAddress(no, first + step)
                    found = CellChange(
                        cell_id(store.cell_key, address), by_no[no].id, at + step, one[0], other[0]
                    )
                    changes.add(found, _size(one) + _size(other))
    return changes


def _size(written: Written) -> int:
    return len(written[1] or "")
