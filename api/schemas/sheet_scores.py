"""Wire shapes of the score of a sheet and of its history."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import Field

from api.schemas.base import Answer, Body, example
from storage.domain.sheet_scores import VersionScore
from storage.sheet_scores import SheetScore

ScoreTypeField = Literal["auto", "boolean", "numeric", "custom"]


class ScoreUpdate(Body):
    """How a sheet is scored; an absent or null key stays as it is, an empty `column_ids` chooses anew."""

    model_config = example({"score_type": "boolean", "column_ids": ["0d9c1e0c-6f7e-4d1c-9c1a-1f4f2a1b2c3d"]})

    score_type: ScoreTypeField | None = None
    column_ids: Annotated[list[Annotated[UUID, Field(strict=False)]], Field(max_length=5_000)] | None = None
    code: (
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=200_000,
                description="The body of a function over `data`; its `rows` are {title: value} each. It "
                "returns a number, true or false, or an object with such a `score`.",
            ),
        ]
        | None
    ) = None
    language: Annotated[Literal["PYTHON", "JAVASCRIPT"] | None, Field(description="PYTHON by default.")] = (
        None
    )


class ScoreAnswer(Answer):
    """The last score of the sheet's version, empty when none was made.

    `score` holds `score` (the mean of its columns), `columns` (each with its share of true or mean, and
    counts), `score_type`, `row_count`, `computed_at`; custom code adds `details`, or `error` and
    `error_message`.
    `stale`: the sheet's cells have changed since.
    """

    success: Literal[True] = True
    score: dict[str, Any]
    score_configuration: dict[str, Any]
    stale: bool
    version: int

    @classmethod
    def of(cls, found: SheetScore) -> Self:
        configuration = {**found.configuration.to_json()}
        return cls(
            score=dict(found.score),
            score_configuration=configuration,
            stale=found.stale,
            version=found.version_count,
        )


class VersionScoreOut(Answer):
    """The score of one version."""

    version_id: UUID
    version_number: int
    name: str
    created_at: datetime
    score: dict[str, Any]

    @classmethod
    def of(cls, one: VersionScore) -> Self:
        return cls(
            version_id=one.id,
            version_number=one.version_number,
            name=one.name,
            created_at=one.created_at,
            score=dict(one.score),
        )
