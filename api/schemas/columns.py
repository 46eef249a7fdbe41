"""Wire shapes of columns: created (E16), changed (E17), deleted (E21)."""

import json
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints, field_validator

from api.schemas.base import Answer, Body, WireInt, example
from api.schemas.cells import CellOut
from api.schemas.sheets import ColumnOut
from storage.column_binding import MOST_CONFIG_BYTES
from storage.column_changes import ColumnChange, ColumnDeleted, ColumnUpdated
from storage.domain.column_types import ALIASES, TYPES, find_type
from storage.new_columns import NewColumn

Title = Annotated[str, StringConstraints(min_length=1, max_length=255)]
Position = Annotated[
    WireInt, Field(ge=0, description="Place among the columns, from 0; beyond the end is the end.")
]
_CONFIG_SCHEMA: dict[str, Any] = {"anyOf": [*(dict(one.schema) for one in TYPES.values()), {"type": "null"}]}


def _checked_size(config: dict[str, Any] | None) -> dict[str, Any] | None:
    if config is not None and len(json.dumps(config, ensure_ascii=False).encode()) > MOST_CONFIG_BYTES:
        raise ValueError(f"has more than {MOST_CONFIG_BYTES} bytes as JSON")
    return config


Config = Annotated[
    dict[str, Any] | None,
    AfterValidator(_checked_size),
    Field(
        json_schema_extra=_CONFIG_SCHEMA,
        description="By the column's type. Columns are named by title or id, and kept by id.",
    ),
]


class DependencyIn(Body):
    """A column that the configuration reads; given, they must be all that it reads."""

    column_id: Annotated[UUID, Field(strict=False)]
    reference_type: str = "value"
    config_key: str | None = None
    config_meta: dict[str, Any] | None = None


class ColumnCreate(Body):
    """A new column. `type` is taken in any case, and by the aliases of public clients."""

    model_config = example(
        {
            "title": "Correct",
            "type": "comparison",
            "config": {"sources": ["Answer", "Expected"], "comparison_type": {"type": "STRING"}},
        }
    )

    title: Title
    type: Annotated[
        str,
        Field(json_schema_extra={"enum": [*TYPES]}, description=f"In any case; also {', '.join(ALIASES)}."),
    ]
    config: Config = None
    dependencies: list[DependencyIn] | None = None
    is_output_column: bool | None = None
    position: Position | None = None

    @field_validator("type")
    @classmethod
    def _known(cls, name: str) -> str:
        found = find_type(name)
        if found is None:
            raise ValueError(f"must be one of {', '.join(TYPES)}")
        return found

    def new_column(self) -> NewColumn:
        return NewColumn(
            self.title,
            self.type,
            self.config or {},
            dependencies_of(self.dependencies),
            self.is_output_column or False,
            self.position,
        )


def dependencies_of(given: list[DependencyIn] | None) -> list[dict[str, Any]] | None:
    """Spell dependencies as the rules take them."""
    return None if given is None else [one.model_dump(mode="json") for one in given]


class ColumnPatch(Body):
    """What changes of a column; what is absent or null stays."""

    model_config = example({"config": {"sources": ["Answer"], "target": "42"}})

    title: Title | None = None
    config: Config = None
    dependencies: list[DependencyIn] | None = None
    is_output_column: bool | None = None
    position: Position | None = None

    def change(self) -> ColumnChange:
        return ColumnChange(
            self.title, self.config, dependencies_of(self.dependencies), self.is_output_column, self.position
        )


class ColumnCreated(Answer):
    """Answer of E16: the first 1,000 cells; a computed column's are queued under `operation_id`."""

    success: Literal[True] = True
    column: ColumnOut
    cells: list[CellOut]
    cell_count: int
    operation_id: str | None
    version: int


class ColumnChanged(Answer):
    """Answer of E17. Nothing is computed yet; `stale_count` cells turned stale."""

    success: Literal[True] = True
    column: ColumnOut
    requires_recalculation: bool
    affected_column_ids: list[UUID]
    stale_count: int
    version: int

    @classmethod
    def of(cls, found: ColumnUpdated, sheet_id: UUID, workspace_id: int) -> Self:
        return cls(
            column=ColumnOut.of(found.column, sheet_id, workspace_id),
            requires_recalculation=bool(found.affected),
            affected_column_ids=list(found.affected),
            stale_count=found.stale_count,
            version=found.version_number,
        )


class ColumnGone(Answer):
    """Answer of E21: cells that read the column turned stale."""

    success: Literal[True] = True
    message: str
    stale_count: int
    version: int

    @classmethod
    def of(cls, found: ColumnDeleted) -> Self:
        return cls(message="Column deleted", stale_count=found.stale_count, version=found.version_number)
