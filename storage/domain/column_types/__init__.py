"""The seven types of columns: what the configuration of each holds, and which columns it reads."""

from collections.abc import Mapping
from typing import Any

from storage.domain.column_types import code, comparison, composition, llm, prompt_template, score, text
from storage.domain.column_types.binding import Binder, ColumnType, Edge
from storage.domain.errors import InvalidConfig
from storage.domain.shapes import check_shape

TEXT = "text"

TYPES: Mapping[str, ColumnType] = {
    TEXT: text.TYPE,
    "prompt_template": prompt_template.TYPE,
    "llm": llm.TYPE,
    "code": code.TYPE,
    "score": score.TYPE,
    "comparison": comparison.TYPE,
    "composition": composition.TYPE,
}
ASK_MODELS = frozenset({"prompt_template", "llm", "embedding"})
"""What (`runner_of`) mostly waits for a model when it computes."""
ALIASES: Mapping[str, str] = {"code_execution": "code", "llm_assertion": "llm", "compare": "comparison"}


def find_type(name: str) -> str | None:
    """Return the type that a name in any case, or an alias of it, means."""
    lower = name.casefold()
    known = ALIASES.get(lower, lower)
    return known if known in TYPES else None


def runner_of(kind: str, config: Mapping[str, Any]) -> str:
    """Name what computes a column: its type, but for scores that ask a model and prompts that ask none."""
    if kind == "prompt_template" and config.get("return_template_only"):
        return "filled"
    return "embedding" if kind == "score" and "embedding" in config else kind


def bind_config(kind: str, config: Mapping[str, Any], binder: Binder) -> tuple[dict[str, Any], list[Edge]]:
    """Check a configuration and return it as it is stored, with column ids, and the edges it makes.

    Raises:
        InvalidConfig: it does not fit its type; names the key.
    """
    check_shape(config, TYPES[kind].schema)
    bound = TYPES[kind].bind(dict(config), binder)
    return bound, binder.edges


def find_disagreement(derived: list[Edge], given: list[Mapping[str, Any]]) -> str | None:
    """Say how dependencies that a client gave differ from those of the configuration; None: they agree."""
    for at, one in enumerate(given):
        if one.get("reference_type", "value") != "value":
            return f"dependencies[{at}].reference_type: must be value"
    wanted, named = {edge["column_id"] for edge in derived}, {str(one["column_id"]) for one in given}
    if wanted - named:
        return f"dependencies: the configuration reads {', '.join(sorted(wanted - named))} as well"
    if named - wanted:
        return f"dependencies: the configuration does not read {', '.join(sorted(named - wanted))}"
    return None


__all__ = [
    "ALIASES",
    "ASK_MODELS",
    "TEXT",
    "TYPES",
    "InvalidConfig",
    "bind_config",
    "find_disagreement",
    "find_type",
    "runner_of",
]
