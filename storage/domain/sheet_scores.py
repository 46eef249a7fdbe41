"""The score of a sheet: which columns it is made of, what each comes to, and all together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from storage.domain.columns import TEXT, Column
from storage.domain.errors import InvalidConfig

ScoreType = Literal["auto", "boolean", "numeric", "custom"]
AUTO, BOOLEAN, NUMERIC, CUSTOM = "auto", "boolean", "numeric", "custom"
LANGUAGES = ("PYTHON", "JAVASCRIPT")
MOST_CUSTOM_CELLS = 1_000_000
_SCORING_TYPES = frozenset({"score", "comparison"})


@dataclass(frozen=True, slots=True)
class ScoreConfiguration:
    """How a sheet is scored.

    `auto`: each column by its values, those of true and false as the share of true, numbers as their mean.
    `boolean`, `numeric`: every column as that. `custom`: `code` over all rows. Without `column_ids` the
    output columns count, else scores and comparisons, else the last computed column.
    """

    score_type: ScoreType = "auto"
    column_ids: tuple[UUID, ...] | None = None
    code: str | None = None
    language: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Spell what was set."""
        ids = None if self.column_ids is None else [str(one) for one in self.column_ids]
        spelled = {"score_type": self.score_type, "column_ids": ids, "code": self.code}
        return {
            key: value for key, value in {**spelled, "language": self.language}.items() if value is not None
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "ScoreConfiguration":
        ids = value.get("column_ids")
        return cls(
            value.get("score_type", AUTO),
            None if ids is None else tuple(UUID(one) for one in ids),
            value.get("code"),
            value.get("language"),
        )


def changed_configuration(
    before: ScoreConfiguration,
    *,
    score_type: ScoreType | None,
    column_ids: Sequence[UUID] | None,
    code: str | None,
    language: str | None,
) -> ScoreConfiguration:
    """Return the configuration with what was given; code goes with `custom` alone.

    Raises:
        InvalidConfig: it does not fit together; names the key.
    """
    kind = score_type or before.score_type
    ids = before.column_ids if column_ids is None else tuple(dict.fromkeys(column_ids)) or None
    if kind != CUSTOM:
        if code is not None or language is not None:
            raise InvalidConfig(f"{'code' if code is not None else 'language'}: goes with score_type custom")
        return ScoreConfiguration(kind, ids)
    text = code or before.code
    if text is None:
        raise InvalidConfig("code: is required with score_type custom")
    return ScoreConfiguration(kind, ids, text, language or before.language or LANGUAGES[0])


def scored_columns(configuration: ScoreConfiguration, columns: Sequence[Column]) -> list[Column]:
    """Return the columns that count; one that was configured and is gone counts no more."""
    if configuration.column_ids is not None:
        wanted = set(configuration.column_ids)
        return [column for column in columns if column.id in wanted]
    if configuration.score_type == CUSTOM:
        return list(columns)
    computed = [column for column in columns if column.type != TEXT]
    outputs = [column for column in columns if column.is_output_column]
    scoring = [column for column in computed if column.type in _SCORING_TYPES]
    return outputs or scoring or computed[-1:]


@dataclass(frozen=True, slots=True)
class Tally:
    """What the values of a column are: `total` and `count` are of those that count as numbers."""

    trues: int = 0
    falses: int = 0
    count: int = 0
    total: float = 0.0
    missing: int = 0
    others: int = 0

    def plus(self, more: "Tally") -> "Tally":
        return Tally(*(getattr(self, name) + getattr(more, name) for name in Tally.__slots__))


@dataclass(frozen=True, slots=True)
class ColumnScore:
    """What a column comes to: `score` is the share of true or the mean, None where nothing counts.

    `count` values count; `missing` are null; `others` are neither.
    """

    column_id: UUID
    title: str
    score_type: Literal["boolean", "numeric"] | None
    score: float | None
    count: int
    missing: int
    others: int


def column_score(configuration: ScoreConfiguration, column: Column, tally: Tally) -> ColumnScore:
    """Score a column by its tally; in `auto` values of both kinds come to nothing."""
    truths = tally.trues + tally.falses
    kind: Literal["boolean", "numeric"] | None = None
    if configuration.score_type in {BOOLEAN, NUMERIC}:
        kind = "boolean" if configuration.score_type == BOOLEAN else "numeric"
    elif not tally.others and bool(truths) != bool(tally.count):
        kind = "boolean" if truths else "numeric"
    count, total = (truths, float(tally.trues)) if kind == "boolean" else (tally.count, tally.total)
    others = tally.others + truths + tally.count - count if kind else tally.others + truths + tally.count
    score = total / count if kind and count and math.isfinite(total) else None
    return ColumnScore(column.id, column.title, kind, score, count if kind else 0, tally.missing, others)


def overall(scores: Sequence[ColumnScore]) -> float | None:
    """The mean of the columns that have a score."""
    held = [one.score for one in scores if one.score is not None]
    return sum(held) / len(held) if held else None


def custom_result(value: Any) -> tuple[float | None, Mapping[str, Any], str | None]:
    """Read what custom code returned: a number, true or false, or an object with `score`.

    Return the score, the other keys of the object, and what is wrong with it.
    """
    details: dict[str, Any] = {}
    if isinstance(value, dict) and "score" in value:
        details = {key: held for key, held in value.items() if key != "score"}
        value = value["score"]
    if isinstance(value, bool | int | float):
        return float(value), details, None
    return None, details, "The code must return a number, true or false, or an object with such a `score`"


@dataclass(frozen=True, slots=True)
class VersionScore:
    """The score of a version, as it is kept."""

    id: UUID
    version_number: int
    name: str
    created_at: datetime
    score: Mapping[str, Any]
