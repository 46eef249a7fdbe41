"""composition: a mirror of a column, of any sheet, or an operation over columns of the same row."""

from typing import Any

from storage.domain.column_types.binding import SOURCE, SOURCES, Binder, ColumnType, config_schema
from storage.domain.errors import InvalidConfig
from storage.domain.json_paths import parse_json_path
from storage.domain.patterns import LONGEST_PATTERN, check_pattern

OF_ONE = frozenset({"json_path", "regex_extract", "parse_value"})
OPERATIONS = (
    *("coalesce", "concat", "combine_columns", "json_path", "regex_extract", "parse_value"),
    *("count", "min", "max"),
)
_ARGUMENTS = {
    "concat": {"separator"},
    "json_path": {"json_path"},
    "regex_extract": {"pattern", "group"},
    "parse_value": {"value_type"},
}
_ALL_ARGUMENTS = frozenset().union(*_ARGUMENTS.values())
_REQUIRED = {"json_path": "json_path", "regex_extract": "pattern", "parse_value": "value_type"}
_ID = {"type": "string", "minLength": 36, "maxLength": 36}

SCHEMA = config_schema(
    "CompositionConfig",
    {
        "source": {
            "anyOf": [
                SOURCE,
                {
                    "type": "object",
                    "properties": {"table_id": _ID, "sheet_id": _ID, "column_id": _ID},
                    "required": ["table_id", "sheet_id", "column_id"],
                    "additionalProperties": False,
                },
            ]
        },
        "sources": SOURCES,
        "operation": {"type": "string", "enum": list(OPERATIONS)},
        "separator": {"type": "string", "maxLength": 1024, "description": "Of concat; default none."},
        "json_path": {"type": "string", "minLength": 1, "maxLength": 1024},
        "pattern": {"type": "string", "minLength": 1, "maxLength": LONGEST_PATTERN},
        "group": {
            "type": "integer",
            "minimum": 0,
            "maximum": 99,
            "description": "Of regex_extract; default 1, or 0 where there is none.",
        },
        "value_type": {"type": "string", "enum": ["STRING", "NUMBER", "BOOLEAN", "JSON"]},
    },
    (),
    {"operation": "coalesce", "sources": ["Corrected", "Answer"]},
)


def bind(config: dict[str, Any], binder: Binder) -> dict[str, Any]:
    """Bind what is mirrored or combined."""
    operation = config.get("operation")
    _check_arguments(config, operation)
    if operation is None and "sources" in config:
        raise InvalidConfig("config.operation: is required with `sources`")
    if operation is None and "source" not in config:
        raise InvalidConfig("config.source: give the column to mirror, or an `operation` over `sources`")
    if ("source" in config) == ("sources" in config):
        raise InvalidConfig("config.source: give either `source` or `sources`")
    if "sources" in config:
        if operation in OF_ONE and len(config["sources"]) != 1:
            raise InvalidConfig(f"config.sources: {operation} takes one source")
        named = operation == "combine_columns"
        return {**config, "sources": binder.sources(config["sources"], named=named)}
    source = config["source"]
    if isinstance(source, str):
        return {**config, "source": binder.source(source, "source")}
    return {**config, "source": binder.elsewhere(source, "source")}


def _check_arguments(config: dict[str, Any], operation: str | None) -> None:
    allowed = _ARGUMENTS.get(operation or "", set())
    for name in sorted(_ALL_ARGUMENTS & set(config) - allowed):
        raise InvalidConfig(f"config.{name}: does not go with {operation or 'a mirror'}")
    needed = _REQUIRED.get(operation or "")
    if needed and needed not in config:
        raise InvalidConfig(f"config.{needed}: is required by {operation}")
    if "json_path" in config:
        parse_json_path(config["json_path"], "config.json_path")
    if "pattern" in config:
        _check_pattern(config["pattern"], config.get("group"))


def _check_pattern(pattern: str, group: int | None) -> None:
    groups = check_pattern(pattern, "config.pattern")
    if group is not None and group > groups:
        raise InvalidConfig(f"config.group: the pattern has {groups} groups")


TYPE = ColumnType(SCHEMA, bind)
