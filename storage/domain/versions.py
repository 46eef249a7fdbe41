"""Versions: the public, structural history of a sheet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from storage.domain.columns import TEXT, Column
from storage.domain.version_changes import RowChanges

VersionSource = Literal["automatic", "named", "restored", "import"]
LONGEST_NAME = 255
MOST_LISTED_DELTAS = 50


@dataclass(frozen=True, slots=True)
class Delta:
    """One change against the version before: which ids, and what stood and stands there."""

    type: str
    ids: Sequence[str]
    before: Any
    after: Any

    def to_json(self) -> dict[str, Any]:
        return {"type": self.type, "ids": list(self.ids), "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True)
class Structure:
    """Title, place and columns of a sheet as they stood."""

    title: str
    index: int
    columns: tuple[Column, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "index": self.index,
            "columns": [{**_plain(column), "id": str(column.id)} for column in self.columns],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Structure":
        columns = tuple(Column(**{**column, "id": UUID(column["id"])}) for column in value["columns"])
        return cls(value["title"], value["index"], columns)


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a sheet; `structure` only where it was asked for.

    `metadata` holds row_count, column_count, source, source_version_id and delta_count; `score` is the last
    that was made of it, empty when none was; `score_configuration` what was set.
    """

    id: UUID
    version_number: int
    name: str
    created_by: str
    created_at: datetime
    snapshot_no: int
    metadata: Mapping[str, Any]
    deltas: Sequence[Mapping[str, Any]]
    score: Mapping[str, Any]
    score_configuration: Mapping[str, Any]
    structure: Structure | None


def _plain(column: Column) -> dict[str, Any]:
    return {name: getattr(column, name) for name in Column.__slots__}


def columns_added(columns: Sequence[Column]) -> Delta:
    after = [{"id": str(column.id), "title": column.title, "type": column.type} for column in columns]
    return Delta("column_added", [one["id"] for one in after], None, after)


def columns_deleted(columns: Sequence[Column]) -> Delta:
    before = [{"id": str(column.id), "title": column.title, "type": column.type} for column in columns]
    return Delta("column_deleted", [one["id"] for one in before], before, None)


def sheet_updated(sheet_id: UUID, before: Mapping[str, Any], after: Mapping[str, Any]) -> Delta:
    return Delta("sheet_updated", [str(sheet_id)], before, after)


def restored(source_id: UUID, before: int, source: int) -> Delta:
    """`before` and `source` are version numbers."""
    return Delta("restored", [str(source_id)], {"version_number": before}, {"version_number": source})


def row_deltas(changes: RowChanges, before: int, after: int) -> list[Delta]:
    """Spell rows that came and went between states of `before` and `after` rows."""
    found = []
    if changes.deleted:
        left = before - changes.deleted
        found.append(Delta("rows_deleted", [], {"row_count": before}, {"row_count": left}))
    if changes.added:
        first = before - changes.deleted
        found.append(Delta("rows_added", [], {"row_count": first}, {"row_count": after}))
    return found


def cell_deltas(columns: Mapping[int, Column], written: Mapping[int, Sequence[str]]) -> list[Delta]:
    """Spell cells that were written, by column number: by hand, or computed.

    `before` and `after` of single cells are told when the version is read, from its state and the one before.
    """
    found = []
    for kind, is_text in (("cells_updated", True), ("cells_recalculated", False)):
        nos = [no for no in written if (columns[no].type == TEXT) == is_text]
        if nos:
            ids = [one for no in nos for one in written[no]]
            found.append(Delta(kind, ids, None, {"column_ids": [str(columns[no].id) for no in nos]}))
    return found


def column_updated(before: Column, after: Column) -> Delta:
    names = [name for name in Column.__slots__ if getattr(before, name) != getattr(after, name)]
    held = [{name: getattr(one, name) for name in names} for one in (before, after)]
    return Delta("column_updated", [str(after.id)], *held)
