"""Answers that must be JSON, and fit a schema where the column has one.

A schema that refers to its own parts can be made to take for ever over a small answer, and a large one over
a large answer: such pairs are judged in the sandbox, whose time is bounded; all others at once.
"""

import json
from collections.abc import Mapping
from typing import Any

from jsonschema_rs import RegexOptions, ValidationError, validator_for

from pipelines.columns.asks import Misfit, Unjudged, json_of
from pipelines.columns.protocol import ColumnContext
from pipelines.providers.caller import Answered
from storage.domain.errors import InvalidConfig, LimitReached, Unguarded
from storage.domain.results import CellError
from storage.sandbox import SandboxedSchema, schema_of

_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_MOST_PARTS = 1_000
# parts of a schema times characters of an answer: about a fifth of a second at worst
_MOST_WORK = 20_000_000
_MOST_LIMITS = 3


class Fitting:
    """A JSON value that fits a schema; no schema: any."""

    mends = True

    def __init__(self, schema: Mapping[str, Any] | None, context: ColumnContext) -> None:
        """Compile a schema.

        Raises:
            InvalidConfig: it is no JSON schema, or refers to what lies elsewhere; or it refers to its own
                parts, and the sandbox does not hold on this machine.
        """
        self.spelled = json.dumps(["fitting", schema], sort_keys=True)
        self._parts = count_parts(schema)
        self._validator: Any = None
        self._guarded: SandboxedSchema | None = None
        self._limits = 0
        if schema is None:
            return
        self._guarded = schema_of(context.store, context.who, schema)
        if self._parts is not None:
            self._validator = _compiled(schema)
            return
        try:
            self._guarded.inspect()
        except Unguarded as error:
            raise InvalidConfig(f"config.response_format: {error.message}") from error

    @property
    def slow(self) -> bool:
        """Whether it waits for the sandbox, but for the largest answers."""
        return self._guarded is not None and self._parts is None

    @property
    def given_up(self) -> CellError | None:
        """Why no more answers are asked for: they could not be judged."""
        if self._limits < _MOST_LIMITS:
            return None
        return CellError("not_tried", f"Not asked: the schema met a limit over {_MOST_LIMITS} answers")

    def read(self, answered: Answered) -> Any:
        value = json_of(answered.text)
        if self._guarded is None:
            return value
        if self._parts is not None and self._parts * len(answered.text) <= _MOST_WORK:
            problem = _misfit(self._validator, value)
        else:
            problem = self._judged(self._guarded, value)
        if problem is not None:
            raise Misfit(problem)
        return value

    def _judged(self, schema: SandboxedSchema, value: Any) -> str | None:
        try:
            return schema.find_misfit(value)
        except LimitReached as met:
            self._limits += 1
            code = "timeout" if met.limit in {"time", "system"} else "memory_limit"
            said = f"The answer could not be held against config.response_format: {met.message}"
            raise Unjudged(CellError(code, said)) from None
        except (InvalidConfig, Unguarded) as error:
            raise Unjudged(CellError(error.code, error.message)) from None


def count_parts(schema: Any) -> int | None:
    """Count the objects of a schema; None where they are many, or where it refers to its own parts."""
    count, left = 0, [schema]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            count += 1
            if one.keys() & _REFERENCES or count > _MOST_PARTS:
                return None
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)
    return count


def _compiled(schema: Mapping[str, Any]) -> Any:
    try:
        # nothing is fetched, and no pattern backtracks
        return validator_for(dict(schema), offline=True, pattern_options=RegexOptions())
    except (ValidationError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise InvalidConfig(f"config.response_format: is no JSON schema: {reason[:300]}") from error


def _misfit(validator: Any, value: Any) -> str | None:
    for error in validator.iter_errors(value):
        where = "".join(f"[{part!r}]" for part in error.instance_path)
        return f"it does not fit the schema at {where or 'the top'}: {error.message[:300]}"
    return None
