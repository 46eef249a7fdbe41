"""comparison: two columns, or one and a fixed target, compared to true or false."""

from typing import Any

from storage.domain.column_types.binding import SOURCES, Binder, ColumnType, config_schema
from storage.domain.errors import InvalidConfig
from storage.domain.json_paths import parse_json_path
from storage.domain.patterns import check_pattern

OPERATORS = ("equals", "not_equals", "lt", "le", "gt", "ge", "contains", "starts_with", "ends_with", "regex")
KINDS = ("STRING", "JSON", "NUMBER")
_OF_TEXT = frozenset({"contains", "starts_with", "ends_with", "regex"})

SCHEMA = config_schema(
    "ComparisonConfig",
    {
        "sources": {**SOURCES, "maxItems": 2},
        "target": {"description": "What a single source is compared with: any JSON value."},
        "comparison_type": {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": list(KINDS)},
                "json_path": {"type": "string", "minLength": 1, "maxLength": 1024},
                "operator": {"type": "string", "enum": list(OPERATORS)},
            },
            "additionalProperties": False,
        },
    },
    ("sources",),
    {"sources": ["Answer", "Expected"], "comparison_type": {"type": "STRING", "operator": "equals"}},
)


def bind(config: dict[str, Any], binder: Binder) -> dict[str, Any]:
    """Bind the sources and fill in what the comparison defaults to."""
    given = config.get("comparison_type", {})
    kind, operator = given.get("type", "STRING"), given.get("operator", "equals")
    if (len(config["sources"]) == 1) != ("target" in config):
        raise InvalidConfig("config.sources: give two sources, or one source and `target`")
    if kind == "NUMBER" and operator in _OF_TEXT:
        raise InvalidConfig(f"config.comparison_type.operator: {operator} does not compare numbers")
    if "json_path" in given:
        if kind != "JSON":
            raise InvalidConfig("config.comparison_type.json_path: goes with type JSON")
        parse_json_path(given["json_path"], "config.comparison_type.json_path")
    if operator == "regex" and isinstance(config.get("target"), str):
        check_pattern(config["target"], "config.target")
    bound = {**config, "sources": binder.sources(config["sources"])}
    return {**bound, "comparison_type": {**given, "type": kind, "operator": operator}}


TYPE = ColumnType(SCHEMA, bind)
