"""Wire shapes of sheet versions and of what differs between two."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import Field, StringConstraints

from api.schemas.base import Answer, Body, example
from api.schemas.sheets import ColumnOut
from storage.domain.version_changes import SheetDiff
from storage.domain.versions import LONGEST_NAME, MOST_LISTED_DELTAS, Version

VersionName = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)]


class VersionCreate(Body):
    """Body of E14: a name saves the state of now, a source brings an earlier state back."""

    model_config = example({"name": "Before the new prompt"})

    name: VersionName | None = None
    source_version_id: Annotated[UUID, Field(strict=False)] | None = None


class VersionMetadata(Answer):
    row_count: int
    column_count: int
    source: Literal["automatic", "named", "restored", "import"]
    source_version_id: UUID | None
    delta_count: int


class VersionOut(Answer):
    """A version; `snapshot` and the deltas of one that was listed are short."""

    id: UUID
    sheet_id: UUID
    version_number: int
    name: str
    created_by: str
    created_at: datetime
    metadata: VersionMetadata
    deltas: list[dict[str, Any]]
    snapshot: dict[str, Any]
    score: dict[str, Any]
    score_configuration: dict[str, Any]

    @classmethod
    def of(cls, version: Version, sheet_id: UUID) -> Self:
        """Spell a version whole."""
        return cls._spell(version, sheet_id, list(version.deltas), _snapshot(version, sheet_id))

    @classmethod
    def listed(cls, version: Version, sheet_id: UUID) -> Self:
        """Spell a version for a list."""
        deltas = [
            {"type": delta["type"], "ids": delta["ids"]} for delta in version.deltas[:MOST_LISTED_DELTAS]
        ]
        counts = {name: version.metadata[name] for name in ("row_count", "column_count")}
        return cls._spell(version, sheet_id, deltas, counts)

    @classmethod
    def _spell(cls, version: Version, sheet_id: UUID, deltas: Any, snapshot: dict[str, Any]) -> Self:
        return cls(
            id=version.id,
            sheet_id=sheet_id,
            version_number=version.version_number,
            name=version.name,
            created_by=version.created_by,
            created_at=version.created_at,
            metadata=VersionMetadata.model_validate(version.metadata),
            deltas=deltas,
            snapshot=snapshot,
            score=dict(version.score),
            score_configuration=dict(version.score_configuration),
        )


def _snapshot(version: Version, sheet_id: UUID) -> dict[str, Any]:
    held = version.structure
    if held is None:
        raise RuntimeError("a version was read without its structure")
    return {
        "sheet": {"id": str(sheet_id), "title": held.title, "index": held.index},
        "columns": [
            {name: value for name, value in column.items() if name != "no"}
            for column in held.to_json()["columns"]
        ],
        "row_count": version.metadata["row_count"],
    }


class VersionAnswer(Answer):
    success: Literal[True] = True
    version: VersionOut


class ColumnChangeOut(Answer):
    before: ColumnOut
    after: ColumnOut


class ColumnsDiff(Answer):
    added: list[ColumnOut]
    removed: list[ColumnOut]
    changed: list[ColumnChangeOut]


class CellChangeOut(Answer):
    """A cell that differs; `row_index` is its place in the later version."""

    cell_id: UUID
    column_id: UUID
    row_index: int
    before: Any
    after: Any


class CellsDiff(Answer):
    """How many cells of rows and columns of both versions differ, and the first 1,000 of them."""

    changed_count: int
    changes: list[CellChangeOut]


class VersionsDiff(Answer):
    success: Literal[True] = True
    columns: ColumnsDiff
    rows_added: int
    rows_deleted: int
    cells: CellsDiff

    @classmethod
    def of(cls, diff: SheetDiff, sheet_id: UUID, workspace_id: int) -> Self:
        def spell(column: Any) -> ColumnOut:
            return ColumnOut.of(column, sheet_id, workspace_id)

        return cls(
            columns=ColumnsDiff(
                added=[spell(column) for column in diff.columns_added],
                removed=[spell(column) for column in diff.columns_removed],
                changed=[
                    ColumnChangeOut(before=spell(before), after=spell(after))
                    for before, after in diff.columns_changed
                ],
            ),
            rows_added=diff.rows.added,
            rows_deleted=diff.rows.deleted,
            cells=CellsDiff(
                changed_count=diff.changed_count,
                changes=[
                    CellChangeOut(
                        cell_id=one.cell_id,
                        column_id=one.column_id,
                        row_index=one.row_index,
                        before=one.before,
                        after=one.after,
                    )
                    for one in diff.changes
                ],
            ),
        )
