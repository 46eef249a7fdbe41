"""The evaluator of JSON schemas: compiled, and held against values; a schema may be made to take for ever.

A request is {"schema": schema} or {"schema": schema, "value": value}; the answer is null where the value
fits, else where it does not and why, in a sentence. Nothing that a schema refers to is fetched, and its
patterns are of the kind whose time is linear.
"""

from typing import Any

from jsonschema_rs import RegexOptions, ValidationError, validator_for

from storage.engine.sandbox.inside.worker import Evaluator, Refusal

_LONGEST = 300


def evaluator() -> Evaluator:
    """Return an evaluator, its engine loaded and tried."""
    evaluate = _Evaluator()
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"pattern": "^x"}}}
    if evaluate({"schema": schema, "value": {"a": "x"}}) is not None or not evaluate(
        {"schema": schema, "value": {"a": "y"}}
    ):
        raise RuntimeError("JSON schemas are not understood")
    return _Evaluator()


def compiled(schema: Any) -> Any:
    """Compile a schema.

    Raises:
        ValueError: it is none, or refers to what lies elsewhere; the message says why.
    """
    try:
        return validator_for(schema, offline=True, pattern_options=RegexOptions())
    except (ValidationError, ValueError) as error:
        raise ValueError(str(error).split("\n", 1)[0][:_LONGEST]) from None


def find_misfit(validator: Any, value: Any) -> str | None:
    """Say where a value does not fit and why; None where it does."""
    for error in validator.iter_errors(value):
        where = "".join(f"[{part!r}]" for part in error.instance_path)
        return f"it does not fit the schema at {where or 'the top'}: {error.message[:_LONGEST]}"
    return None


class _Evaluator:
    """Keeps the last schema: a column has one, and asks about many values."""

    def __init__(self) -> None:
        self._schema: Any = None
        self._validator: Any = None

    def __call__(self, request: Any) -> Any:
        if self._validator is None or request["schema"] != self._schema:
            try:
                self._validator = compiled(request["schema"])
            except ValueError as error:
                raise Refusal({"why": str(error)}) from None
            self._schema = request["schema"]
        return find_misfit(self._validator, request["value"]) if "value" in request else None
