"""prompt_template: a registered or inline prompt, filled from columns and usually answered by a model."""

from collections.abc import Mapping
from typing import Any

from storage.domain.column_types.binding import CACHE, ENGINE, MAPPING, Binder, ColumnType, config_schema
from storage.domain.errors import InvalidConfig
from storage.domain.shapes import Schema
from storage.domain.templates import F_STRING, JINJA2


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_TEXT: Schema = {"type": "string"}
_OBJECT: Schema = {"type": "object"}
_FORMAT = _or_null({"type": "string", "enum": [F_STRING, JINJA2]})
_BLOCKS = _or_null(
    {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"type": _TEXT, "text": _or_null(_TEXT)},
            "required": ["type"],
        },
    }
)
_MESSAGE: Schema = {
    "type": "object",
    "properties": {
        "role": {"type": "string", "minLength": 1},
        "content": _BLOCKS,
        "tool_calls": _or_null({"type": "array", "items": _OBJECT}),
        "template_format": _FORMAT,
    },
    "required": ["role"],
}
_BLUEPRINT: Schema = {
    "type": "object",
    "description": "A prompt blueprint.",
    "properties": {
        "type": _or_null({"type": "string", "enum": ["completion", "chat"]}),
        "content": _BLOCKS,
        "messages": _or_null({"type": "array", "items": _MESSAGE}),
        "template_format": _FORMAT,
        "tools": _or_null({"type": "array", "items": _OBJECT}),
    },
}
_METADATA: Schema = {
    "type": "object",
    "properties": {
        "model": _or_null(
            {
                "type": "object",
                "properties": {
                    "provider": _or_null(_TEXT),
                    "name": _or_null(_TEXT),
                    "parameters": _or_null(_OBJECT),
                },
            }
        )
    },
}

SCHEMA = config_schema(
    "PromptTemplateConfig",
    {
        "template": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 512},
                "id": {"type": "integer", "minimum": 1, "maximum": 2**53},
                "version_number": {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
                "label": {"type": "string", "minLength": 1, "maxLength": 512},
            },
            "additionalProperties": False,
        },
        "inline_template": {
            "type": "object",
            "properties": {
                "prompt_template": _BLUEPRINT,
                "metadata": _METADATA,
            },
            "required": ["prompt_template"],
            "additionalProperties": False,
        },
        "prompt_template_variable_mappings": MAPPING,
        "engine": ENGINE,
        "return_template_only": {"type": "boolean"},
        "cache": CACHE,
    },
    (),
    {
        "template": {"name": "answer", "label": "prod"},
        "prompt_template_variable_mappings": {"question": "Question"},
    },
)


def bind(config: dict[str, Any], binder: Binder) -> dict[str, Any]:
    """Bind the columns that fill the variables."""
    if ("template" in config) == ("inline_template" in config):
        raise InvalidConfig("config.template: give either `template` or `inline_template`")
    if "template" in config:
        named = config["template"]
        if ("name" in named) == ("id" in named):
            raise InvalidConfig("config.template: give either `name` or `id`")
        if "version_number" in named and "label" in named:
            raise InvalidConfig("config.template: give `version_number` or `label`, not both")
    else:
        _check_texts(config["inline_template"]["prompt_template"])
    key = "prompt_template_variable_mappings"
    return {**config, key: binder.mapping(config.get(key, {}), key)}


def _check_texts(blueprint: Mapping[str, Any]) -> None:
    """Raise InvalidConfig if a block of text holds none: it would be asked about nothing."""
    contents = {"content": blueprint.get("content")}
    for at, message in enumerate(blueprint.get("messages") or ()):
        contents[f"messages[{at}].content"] = message.get("content")
    for place, blocks in contents.items():
        for at, block in enumerate(blocks or ()):
            if block["type"] == "text" and block.get("text") is None:
                where = f"config.inline_template.prompt_template.{place}[{at}].text"
                raise InvalidConfig(f"{where}: is required")


TYPE = ColumnType(SCHEMA, bind)
