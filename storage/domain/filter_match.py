"""The meaning of filter groups: whether one log matches. SQL must say the same of every log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage.domain.facets import Facets, Pair, facets_of, keys_of, variable_values
from storage.domain.filters import FIELDS, Filter, Group, Holds, IsAbsent, IsTrue, OneOf, Range, Test
from storage.domain.transcripts import input_text, messages_of, output_text
from storage.domain.words import fold, holds_words

_COLUMN_OF = {
    "engine": "model",
    "provider_type": "provider",
    "prompt": "prompt_name",
    "cost": "price",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """One log as filters see it: its id and fields as stored, its scores, the labels of its version."""

    id: int
    fields: Mapping[str, Any]
    scores: Mapping[str, int]
    labels: Sequence[str] = ()

    @property
    def facets(self) -> Facets:
        return facets_of(self.fields["output"])

    @property
    def input_text(self) -> str:
        return input_text(messages_of(self.fields["input"])) or ""

    @property
    def output_text(self) -> str:
        return output_text(self.fields["output"])


def matches(asked: Filter | Group, log: Subject) -> bool:
    """Say whether a log matches a filter or a group; two-valued."""
    if isinstance(asked, Filter):
        return _holds(asked, log) != asked.negated
    found = (matches(one, log) for one in asked.filters)
    if not asked.filters:
        return True
    return all(found) if asked.logic == "AND" else any(found)


def matches_words(words: tuple[str, ...], log: Subject) -> bool:
    """Say whether a log has each of the words in its input or output text."""
    return holds_words(words, log.input_text, log.output_text)


def _holds(asked: Filter, log: Subject) -> bool:
    kind = FIELDS[asked.field]
    if kind == "boolean":
        return _statement(asked.field, log.facets)
    if kind == "nested":
        pairs = _pairs(asked.field, log)
        values = [value for key, value in pairs if asked.nested_key in (None, key)]
        return _holds_of(asked.test, [value for value in values if value is not None])
    if kind == "array":
        return _holds_of(asked.test, _elements(asked.field, log), empty_counts=True)
    if asked.field == "prompt_label":
        return _holds_of(asked.test, log.labels)
    value = _value(asked, log)
    return _holds_of(asked.test, [] if value is None else [value], empty_counts=True)


def _holds_of(test: Test, values: Sequence[Any], *, empty_counts: bool = False) -> bool:
    match test:
        case OneOf(wanted):
            return any(value in wanted for value in values)
        case Range(low, high):
            return any((low is None or value >= low) and (high is None or value <= high) for value in values)
        case Holds(text, place):
            return any(_has(fold(value), fold(text), place) for value in values)
        case IsAbsent():
            return not values if empty_counts else not any(values)
        case IsTrue():
            raise TypeError("of statements only")


def _has(text: str, wanted: str, place: str) -> bool:
    if place == "start":
        return text.startswith(wanted)
    return text.endswith(wanted) if place == "end" else wanted in text


def _statement(field: str, facets: Facets) -> bool:
    if field == "is_json":
        return facets.is_json
    if field == "is_tool_call":
        return facets.is_tool_call
    return not facets.is_json and not facets.is_tool_call


def _value(asked: Filter, log: Subject) -> Any:
    fields = log.fields
    if asked.field == "pl_id":
        return log.id
    if asked.field == "score":
        return log.scores.get(asked.nested_key or "")
    if asked.field == "latency_ms":
        return (fields["request_end_time"] - fields["request_start_time"]) / 1000
    if asked.field in {"input_text", "output_text"}:
        return getattr(log, asked.field)
    return fields[_COLUMN_OF.get(asked.field, asked.field)]


def _elements(field: str, log: Subject) -> Sequence[str]:
    if field == "tags":
        return tuple(log.fields["tags"])
    if field == "tool_names":
        return log.facets.tool_names
    return keys_of(_pairs(field.removesuffix("_keys"), log))


def _pairs(field: str, log: Subject) -> Sequence[Pair]:
    if field == "metadata":
        return tuple(log.fields["metadata"].items())
    if field == "output":
        return log.facets.values
    return variable_values(log.fields["prompt_input_variables"])
