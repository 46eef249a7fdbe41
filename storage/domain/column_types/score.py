"""score: columns measured to a number."""

from typing import Any

from storage.domain.cells import display_value
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
    for name in ("true_values", "false_values"):
        if name in config and metric in OF_TWO:
            raise InvalidConfig(f"config.{name}: does not go with {metric}, which compares two sources")
    both = [text for text in _spelled(config, "true_values") if text in _spelled(config, "false_values")]
    if both:
        raise InvalidConfig(f"config.false_values: {both[0]} stands in `true_values` as well")
    _check_threshold(metric, config.get("pass_threshold"))
    if "embedding" in config and metric != "cosine_similarity":
        raise InvalidConfig("config.embedding: goes with cosine_similarity")
    return {**config, "sources": binder.sources(config["sources"])}


def _spelled(config: dict[str, Any], key: str) -> list[str | None]:
    """The values of a list as they are shown: so they are compared with cells."""
    return [display_value(value) for value in config.get(key, ())]


def _check_threshold(metric: str, threshold: float | None) -> None:
    if threshold is None or metric not in OF_TWO:
        return
    if threshold < 0:
        raise InvalidConfig("config.pass_threshold: must be 0 or more")
    if threshold > 1 and metric != "absolute_numeric_distance":
        raise InvalidConfig(f"config.pass_threshold: must be 1 or less, as {metric} is")


TYPE = ColumnType(SCHEMA, bind)
