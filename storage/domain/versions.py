"""Versions: the public, structural history of a sheet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from storage.domain.columns import Column

VersionSource = Literal["automatic", "named", "restored", "import"]


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


def _plain(column: Column) -> dict[str, Any]:
    return {name: getattr(column, name) for name in Column.__slots__}


def columns_added(columns: Sequence[Column]) -> Delta:
    after = [{"id": str(column.id), "title": column.title, "type": column.type} for column in columns]
    return Delta("column_added", [one["id"] for one in after], None, after)


def columns_deleted(columns: Sequence[Column]) -> Delta:
    before = [{"id": str(column.id), "title": column.title, "type": column.type} for column in columns]
    return Delta("column_deleted", [one["id"] for one in before], before, None)


def rows_added(before: int, after: int) -> Delta:
    return Delta("rows_added", [], {"row_count": before}, {"row_count": after})
