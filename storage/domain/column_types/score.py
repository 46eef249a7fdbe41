"""score: columns measured to a number."""

from typing import Any

from storage.domain.column_types.binding import SOURCES, Binder, ColumnType, config_schema
from storage.domain.errors import InvalidConfig

OF_TWO = frozenset(
    {
        "absolute_numeric_distance",
        "levenshtein",
        "jaro_winkler",
        "token_f1",
        "exact_match",
        "json_similarity",
        "cosine_similarity",
    }
)
METRICS = (*sorted(OF_TWO), "weighted_mean", "all", "any", "min", "max")
_VALUES = {"type": "array", "maxItems": 1000, "description": "JSON values that count as true, or as false."}

SCHEMA = config_schema(
    "ScoreConfig",
    {
        "sources": SOURCES,
        "metric": {"type": "string", "enum": list(METRICS)},
        "weights": {"type": "array", "items": {"type": "number", "minimum": 0}, "minItems": 1},
        "true_values": _VALUES,
        "false_values": _VALUES,
        "pass_threshold": {"type": "number"},
        "embedding": {
            "type": "object",
            "properties": {
                "provider": {"type": "string", "minLength": 1, "maxLength": 255},
                "model": {"type": "string", "minLength": 1, "maxLength": 255},
            },
            "required": ["provider", "model"],
            "additionalProperties": False,
        },
    },
    ("sources", "metric"),
    {"sources": ["Answer", "Expected"], "metric": "levenshtein"},
)


def bind(config: dict[str, Any], binder: Binder) -> dict[str, Any]:
    """Bind the sources; their number and the options must fit the metric."""
    metric, count = config["metric"], len(config["sources"])
    if metric in OF_TWO and count != 2:  # noqa: PLR2004
        raise InvalidConfig(f"config.sources: {metric} compares two sources, not {count}")
    if "weights" in config:
        if metric != "weighted_mean":
            raise InvalidConfig("config.weights: goes with weighted_mean")
        if len(config["weights"]) != count:
            raise InvalidConfig("config.weights: needs one weight a source")
        if not sum(config["weights"]):
            raise InvalidConfig("config.weights: one of them must be above 0")
    if "embedding" in config and metric != "cosine_similarity":
        raise InvalidConfig("config.embedding: goes with cosine_similarity")
    return {**config, "sources": binder.sources(config["sources"])}


TYPE = ColumnType(SCHEMA, bind)
