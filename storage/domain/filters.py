"""Filter groups: what a client may ask of request logs, parsed into frozen values of few shapes.

A group is `{logic: "AND"|"OR", filters: [filter | group]}`, a filter
`{field, operator, value, nested_key}`. Operators that say the same of a field become one test, some negated:
`gt 3` of whole numbers is `Range(4, None)`, `is_not` is a negated `OneOf`. A negated test matches where the
field is absent: whatever the test does not hold for.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from storage.domain.errors import Invalid, Problem
from storage.domain.filter_values import number_range, read_member, read_text, read_texts, time_span
from storage.domain.request_logs import DEFAULT_SCORE_NAME

Kind = Literal["string", "text", "integer", "number", "datetime", "boolean", "array", "nested"]
Logic = Literal["AND", "OR"]

MOST_DEPTH = 200
MOST_FILTERS = 1_000
MOST_COSTLY_FILTERS = 100
"""Of each kind: by each filter a text is made anew, scores are joined with the logs, variables are parsed."""
MOST_VALUES = 10_000
_MOST_PROBLEMS = 20

FIELDS: Mapping[str, Kind] = {
    "engine": "string",
    "provider_type": "string",
    "status": "string",
    "error_type": "string",
    "prompt": "string",
    "prompt_label": "string",
    "function_name": "string",
    "input_text": "text",
    "output_text": "text",
    "pl_id": "integer",
    "prompt_id": "integer",
    "prompt_version_number": "integer",
    "input_tokens": "integer",
    "output_tokens": "integer",
    "score": "integer",
    "cost": "number",
    "latency_ms": "number",
    "request_start_time": "datetime",
    "request_end_time": "datetime",
    "is_json": "boolean",
    "is_tool_call": "boolean",
    "is_plain_text": "boolean",
    "tags": "array",
    "metadata_keys": "array",
    "tool_names": "array",
    "output_keys": "array",
    "input_variable_keys": "array",
    "metadata": "nested",
    "output": "nested",
    "input_variables": "nested",
}
_COSTLY: Mapping[str, str] = {
    "input_text": "texts",
    "output_text": "texts",
    "score": "scores",
    "input_variables": "input variables",
    "input_variable_keys": "input variables",
}
_NUMERIC = ("eq", "neq", "gt", "gte", "lt", "lte", "between", "in", "not_in", "is_null", "is_not_null")
OPERATORS: Mapping[Kind, tuple[str, ...]] = {
    "string": ("is", "is_not", "in", "not_in"),
    "text": ("contains", "not_contains", "starts_with", "ends_with"),
    "integer": _NUMERIC,
    "number": _NUMERIC,
    "datetime": ("is", "before", "after", "between"),
    "boolean": ("is_true", "is_false"),
    "array": ("contains", "not_contains", "in", "not_in", "is_empty", "is_not_empty"),
    "nested": (
        "key_equals", "key_not_equals", "key_contains", "in", "not_in", "is_empty", "is_not_empty",
    ),
}  # fmt: skip
NEGATED = frozenset(
    {
        "is_not", "not_in", "not_contains", "neq", "is_not_null", "is_false", "is_not_empty",
        "key_not_equals",
    }
)  # fmt: skip
Place = Literal["anywhere", "start", "end"]
_PLACES: Mapping[str, Place] = {"starts_with": "start", "ends_with": "end"}


@dataclass(frozen=True, slots=True)
class OneOf:
    """The field (or, of an array or nested field, an element of it) equals one of the values."""

    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """The field lies between two numbers, both inclusive; None is open. Times are microseconds since 1970."""

    low: int | float | None
    high: int | float | None


@dataclass(frozen=True, slots=True)
class Holds:
    """The text (or, of a nested field, a value under its key) has another text at a place, in any case."""

    text: str
    place: Place = "anywhere"


@dataclass(frozen=True, slots=True)
class IsTrue:
    """The statement that the field makes is true."""


@dataclass(frozen=True, slots=True)
class IsAbsent:
    """The field has no value: null, no element, or under its key nothing but nulls and empty texts."""


Test = OneOf | Range | Holds | IsTrue | IsAbsent


@dataclass(frozen=True, slots=True)
class Filter:
    """One test of one field; `nested_key` is a key of a nested field or the name of a score."""

    field: str
    test: Test
    negated: bool = False
    nested_key: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Filters and groups, all (`AND`) or any (`OR`) of which must match; an empty one matches all."""

    logic: Logic
    filters: tuple["Filter | Group", ...]


EVERYTHING = Group("AND", ())


def parse_filter_group(value: Any, loc: Sequence[str] = ("body", "filter_group")) -> Group:
    """Read a JSON value as a filter group; `{}` matches all.

    Raises:
        Invalid: it is none; each problem names the filter by its path below `loc`.
    """
    return _Parser().parse(value, tuple(loc))


def fields_of(group: Group) -> set[str]:
    """The fields that a group asks about."""
    return {leaf.field for leaf in leaves(group)}


def leaves(group: Group) -> list[Filter]:
    """Every filter of a group, at any depth."""
    found: list[Filter] = []
    left: list[Filter | Group] = [group]
    while left:
        one = left.pop()
        if isinstance(one, Filter):
            found.append(one)
        else:
            left.extend(one.filters)
    return found


class _Parser:
    """Counts what a whole group holds, and gathers what is wrong with it."""

    def __init__(self) -> None:
        self._filters = 0
        self._costly: Counter[str] = Counter()
        self._values = 0
        self._problems: list[Problem] = []

    def parse(self, value: Any, loc: tuple[str, ...]) -> Group:
        group = self._group(value, loc, 1)
        if group is None or self._problems:
            raise Invalid(*self._problems)
        return group

    def _wrong(self, loc: tuple[str, ...], msg: str, kind: str = "value_error") -> None:
        self._problems.append(Problem(loc, msg, kind))
        if len(self._problems) >= _MOST_PROBLEMS:
            raise Invalid(*self._problems)

    def _group(self, value: Any, loc: tuple[str, ...], depth: int) -> Group | None:
        if depth > MOST_DEPTH:
            raise _too_large(loc, f"groups are nested deeper than {MOST_DEPTH}")
        if not isinstance(value, Mapping):
            self._wrong(loc, "must be a group: {logic, filters}", "dict_type")
            return None
        for key in value:
            if key not in {"logic", "filters"}:
                self._wrong((*loc, str(key)), "is no key of a group, which has logic and filters", "extra")
        logic = value.get("logic", "AND")
        if logic not in ("AND", "OR"):
            self._wrong((*loc, "logic"), "must be AND or OR", "enum")
        filters = value.get("filters", [])
        if not isinstance(filters, list):
            self._wrong((*loc, "filters"), "must be a list of filters and groups", "list_type")
            return None
        parsed = [self._one(one, (*loc, "filters", str(at)), depth) for at, one in enumerate(filters)]
        return Group(logic, tuple(one for one in parsed if one is not None))

    def _one(self, value: Any, loc: tuple[str, ...], depth: int) -> Filter | Group | None:
        if isinstance(value, Mapping) and ("filters" in value or "logic" in value):
            return self._group(value, loc, depth + 1)
        self._filters += 1
        if self._filters > MOST_FILTERS:
            raise _too_large(loc, f"a group holds at most {MOST_FILTERS} filters")
        return self._filter(value, loc)

    def _filter(self, value: Any, loc: tuple[str, ...]) -> Filter | None:
        if not isinstance(value, Mapping):
            self._wrong(loc, "must be a filter: {field, operator, value, nested_key}", "dict_type")
            return None
        for key in value:
            if key not in {"field", "operator", "value", "nested_key"}:
                self._wrong((*loc, str(key)), "is no key of a filter", "extra")
        if "field" not in value and "operator" not in value and {"value", "nested_key"} <= value.keys():
            value = {"field": "metadata", "operator": "key_equals", **value}
        field, operator = value.get("field"), value.get("operator")
        if not isinstance(field, str) or field not in FIELDS:
            self._wrong((*loc, "field"), f"must be one of {', '.join(FIELDS)}", "enum")
            return None
        kind = FIELDS[field]
        if (costly := _COSTLY.get(field)) is not None:
            self._costly[costly] += 1
            if self._costly[costly] > MOST_COSTLY_FILTERS:
                raise _too_large(loc, f"a group holds at most {MOST_COSTLY_FILTERS} filters of {costly}")
        if not isinstance(operator, str) or operator not in OPERATORS[kind]:
            self._wrong(
                (*loc, "operator"),
                f"of the field {field} must be one of {', '.join(OPERATORS[kind])}",
                "enum",
            )
            return None
        nested_key = self._nested_key(field, kind, operator, value.get("nested_key"), loc)
        test = self._test(field, operator, value.get("value"), (*loc, "value"))
        return None if test is None else Filter(field, test, operator in NEGATED, nested_key)

    def _nested_key(
        self, field: str, kind: Kind, operator: str, given: Any, loc: tuple[str, ...]
    ) -> str | None:
        where = (*loc, "nested_key")
        if given is not None and not isinstance(given, str):
            self._wrong(where, "must be a string", "string_type")
            return None
        key: str | None = given
        if field == "score":
            return key or DEFAULT_SCORE_NAME
        if kind == "nested":
            if key is None and operator not in {"is_empty", "is_not_empty"}:
                self._wrong(where, f"is missing: which key of {field} is meant?", "missing")
            return key
        if key:
            self._wrong(where, f"is of no use for the field {field}")
        return None

    def _test(self, field: str, operator: str, value: Any, loc: tuple[str, ...]) -> Test | None:
        kind = FIELDS[field]
        if operator in {"is_null", "is_not_null", "is_empty", "is_not_empty"}:
            return IsAbsent()
        if kind == "boolean":
            return IsTrue()
        try:
            if operator in {"in", "not_in"}:
                return OneOf(self._members(field, value, loc))
            return _single_test(field, operator, value)
        except ValueError as error:
            self._wrong(loc, str(error))
            return None

    def _members(self, field: str, value: Any, loc: tuple[str, ...]) -> tuple[Any, ...]:
        values = value if isinstance(value, list) else [value]
        self._values += len(values)
        if self._values > MOST_VALUES:
            raise _too_large(loc, f"a group holds at most {MOST_VALUES} values of in and not_in")
        found: list[Any] = []
        for at, one in enumerate(values):
            try:
                found += _members_of(field, one)
            except ValueError as error:
                self._wrong((*loc, str(at)) if isinstance(value, list) else loc, str(error))
        return _present(found)


def _single_test(field: str, operator: str, value: Any) -> Test:
    kind = FIELDS[field]
    if kind == "datetime":
        return Range(*time_span(operator, value))
    if kind in {"integer", "number"} and operator not in {"eq", "neq"}:
        return Range(*number_range(operator, value, whole=kind == "integer"))
    if kind == "text" or operator == "key_contains":
        return Holds(read_text(value), _PLACES.get(operator, "anywhere"))
    return OneOf(_present(_members_of(field, value)))


def _members_of(field: str, value: Any) -> Sequence[Any]:
    """What one value asks a field for; None among it: what no field can be."""
    kind = FIELDS[field]
    if kind in {"integer", "number"}:
        return [read_member(value, whole=kind == "integer")]
    if field == "input_variables":
        return read_texts(value)
    return [read_text(value)]


def _present(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(value for value in values if value is not None))


def _too_large(loc: tuple[str, ...], msg: str) -> Invalid:
    return Invalid(Problem(loc, msg, "too_long"))
