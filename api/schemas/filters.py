"""Wire shape of what is asked of request logs: filter groups, free text, an order."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from storage.domain.filters import FIELDS, OPERATORS, Group, parse_filter_group
from storage.domain.words import MOST_QUERY_CHARS

_EVERY_OPERATOR = tuple(dict.fromkeys(operator for some in OPERATORS.values() for operator in some))


class Filter(BaseModel):
    """One filter; which operators a field takes, and what value, stands in the table of the README."""

    model_config = ConfigDict(extra="forbid")

    field: Annotated[
        str,
        Field(
            description="Without field and operator: `metadata`, `key_equals`.",
            json_schema_extra={"enum": [*FIELDS]},
        ),
    ] = "metadata"
    operator: Annotated[str, Field(json_schema_extra={"enum": [*_EVERY_OPERATOR]})] = "key_equals"
    value: Annotated[
        Any, Field(description="A string, number or time; a list for in, not_in and between.")
    ] = None
    nested_key: Annotated[
        str | None, Field(description="The key of a nested field, or the name of a score.")
    ] = None


class FilterGroup(BaseModel):
    """Filters and groups of which all (AND) or any (OR) must match; an empty group matches all logs."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "logic": "AND",
                    "filters": [
                        {"field": "engine", "operator": "is", "value": "gpt-4o-mini"},
                        {
                            "logic": "OR",
                            "filters": [
                                {"field": "status", "operator": "is", "value": "ERROR"},
                                {"field": "cost", "operator": "gt", "value": 0.01},
                            ],
                        },
                    ],
                }
            ]
        },
    )

    logic: Literal["AND", "OR"] = "AND"
    filters: list[Union[Filter, "FilterGroup"]] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AskedGroup:
    """A filter group, its JSON as a run reads it again, and what makes two calls the same."""

    group: Group
    spelled: str
    sameness: str


class _GroupAt:
    """Reads a filter group; problems are told below a place of the call."""

    def __init__(self, *loc: str) -> None:
        self._loc = loc

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self._read, serialization=core_schema.plain_serializer_function_ser_schema(_spelling)
        )

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(FilterGroup.__pydantic_core_schema__)

    def _read(self, value: Any) -> AskedGroup:
        group = parse_filter_group(value, self._loc)
        return AskedGroup(group, _json(value), _json(_plain(value)))


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _plain(group: Any) -> dict[str, Any]:
    """A valid group with the logic that was left out, and without keys that are null."""
    return {
        "logic": group.get("logic", "AND"),
        "filters": [
            _plain(one)
            if "filters" in one or "logic" in one
            else {name: value for name, value in one.items() if name != "nested_key" or value is not None}
            for one in group.get("filters", [])
        ],
    }


def _spelling(asked: AskedGroup | None) -> str | None:
    return None if asked is None else asked.sameness


BodyGroup = Annotated[AskedGroup, _GroupAt("body", "filter_group")]
SourceGroup = Annotated[AskedGroup, _GroupAt("body", "source", "filter_group")]
FreeText = Annotated[
    str,
    Field(
        max_length=MOST_QUERY_CHARS,
        description="Each word must begin a word of the input or output text, in any case.",
    ),
]
SortBy = Literal["request_start_time", "input_tokens", "output_tokens", "cost", "latency_ms", "status"]
SortOrder = Literal["asc", "desc"]
Reader = Callable[[Any], AskedGroup]
