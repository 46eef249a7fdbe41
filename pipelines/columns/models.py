"""Which model a column asks, and under which marks its calls are logged."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.columns.protocol import RunContext
from pipelines.providers.caller import Line
from pipelines.providers.choice import choose
from pipelines.providers.retries import RetryPolicy
from storage.domain.errors import InvalidConfig

_DEFAULT_PROVIDER = "openai"
POLICY = RetryPolicy()


@dataclass(frozen=True, slots=True)
class Model:
    """A model, whose it is, and the parameters that the column sets."""

    provider: str
    name: str
    parameters: Mapping[str, Any]

    @classmethod
    def of(cls, engine: Mapping[str, Any], template: Mapping[str, Any]) -> "Model":
        """Take the column's engine, else what its prompt says.

        Raises:
            InvalidConfig: neither names a model.
        """
        name = engine.get("model") or template.get("name")
        if not name:
            raise InvalidConfig("config.engine: is required, for the prompt names no model")
        provider = engine.get("provider") or template.get("provider") or _DEFAULT_PROVIDER
        return cls(provider, name, engine.get("parameters") or {})


def line_of(context: RunContext, model: Model) -> Line:
    """Return the line to a model.

    Raises:
        EngineUnavailable: its provider is not configured, or has no key.
    """
    chosen = choose(context.store.settings, model.provider)
    marks = {"execution_id": context.operation.id, "column_id": str(context.column.id)}
    return Line(context.store, context.who, chosen, model.name, marks, POLICY)


def shares(config: Mapping[str, Any], parameters: Mapping[str, Any]) -> bool:
    """Say whether equal computations answer each other: not where chance is asked for, if nothing is said."""
    said = config.get("cache")
    if isinstance(said, bool):
        return said
    temperature = parameters.get("temperature")
    return not (isinstance(temperature, int | float) and temperature > 0)
