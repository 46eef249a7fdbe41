"""llm: a prompt written in the column itself, or an assertion about another column."""

from collections.abc import Mapping
from typing import Any

from storage.domain.column_types.binding import (
    CACHE,
    ENGINE,
    MAPPING,
    SOURCE,
    Binder,
    ColumnType,
    config_schema,
)
from storage.domain.errors import InvalidConfig
from storage.domain.templates import parse_template, variables_of

_PROMPT = {"type": "string", "minLength": 1, "maxLength": 1_000_000}

SCHEMA = config_schema(
    "LlmConfig",
    {
        "engine": ENGINE,
        "prompt": {
            **_PROMPT,
            "description": "An f-string over titles or variables; with `source` a statement.",
        },
        "system": _PROMPT,
        "variable_mappings": MAPPING,
        "response_format": {
            "type": "object",
            "description": "A JSON schema, bare or in its provider's wrapper.",
        },
        "source": {**SOURCE, "description": "An assertion: the column it is about."},
        "prompt_source": {**SOURCE, "description": "An assertion: the column that holds its statements."},
        "cache": CACHE,
    },
    (),
    {"prompt": "Answer in a word: {Question}", "engine": {"provider": "stub", "model": "echo"}},
)


def bind(config: dict[str, Any], binder: Binder) -> dict[str, Any]:
    """Bind what the prompt names, or what the assertion is about."""
    if "source" in config:
        return _bind_assertion(config, binder)
    if "prompt_source" in config:
        raise InvalidConfig("config.prompt_source: goes with `source`")
    if "prompt" not in config:
        raise InvalidConfig("config.prompt: is required")
    mapped = binder.mapping(config.get("variable_mappings", {}), "variable_mappings")
    for key in ("prompt", "system"):
        for name in variables_of(parse_template(config.get(key, ""), f"config.{key}")):
            if name not in mapped:
                binder.source(name, key, variable_name=name)
    return {**config, "variable_mappings": mapped}


def _bind_assertion(config: dict[str, Any], binder: Binder) -> dict[str, Any]:
    if ("prompt" in config) == ("prompt_source" in config):
        raise InvalidConfig("config.prompt: an assertion needs either `prompt` or `prompt_source`")
    for key in ("variable_mappings", "response_format"):
        if key in config:
            raise InvalidConfig(f"config.{key}: does not go with an assertion")
    bound = {**config, "source": binder.source(config["source"], "source")}
    if "prompt_source" in config:
        bound["prompt_source"] = binder.source(config["prompt_source"], "prompt_source")
    return bound


def schema_in(response_format: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the JSON schema of a response format, bare or in its provider's wrapper; None: it has none."""
    match response_format:
        case {"type": "text" | "json_object"}:
            return None
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return schema
        case {"type": "json_schema", "schema": dict(schema)}:
            return schema
    return response_format


TYPE = ColumnType(SCHEMA, bind)
