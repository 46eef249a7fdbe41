"""prompt_template: a registered or inline prompt, filled from columns and usually answered by a model."""

from typing import Any

from storage.domain.column_types.binding import CACHE, ENGINE, MAPPING, Binder, ColumnType, config_schema
from storage.domain.errors import InvalidConfig

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
                "prompt_template": {"type": "object", "description": "A prompt blueprint."},
                "metadata": {"type": "object"},
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
    elif binder.read_blueprint is not None:
        binder.read_blueprint(config["inline_template"]["prompt_template"])
    key = "prompt_template_variable_mappings"
    return {**config, key: binder.mapping(config.get(key, {}), key)}


TYPE = ColumnType(SCHEMA, bind)
