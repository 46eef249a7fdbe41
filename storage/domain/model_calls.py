"""Calls of models that sheets make: what each took, and how it is logged."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from storage.domain.calls.shapes import Call
from storage.domain.request_logs import ERROR, MAX_ERROR_MESSAGE_CHARS, SUCCESS, WARNING

VARIABLE_MISSING = "VARIABLE_MISSING_OR_EMPTY"
PARTIAL_RESPONSE = "PROVIDER_PARTIAL_RESPONSE"
SOURCE = {"source": "sheet"}
Issue = tuple[str | None, str]
"""A word of 2.1 (None: there is none for it) and a sentence."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """What the calls for a cell took; `latency_ms` and the others are sums."""

    request_count: int = 0
    request_ids: tuple[int, ...] = ()
    latency_ms: float = 0.0
    price: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Metrics") -> "Metrics":
        return Metrics(
            self.request_count + other.request_count,
            self.request_ids + other.request_ids,
            self.latency_ms + other.latency_ms,
            self.price + other.price,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )

    def to_json(self) -> dict[str, Any]:
        """Spell them as a cell's request_metrics."""
        return {
            "request_count": self.request_count,
            "request_ids": list(self.request_ids),
            "latency_ms": self.latency_ms,
            "price": self.price,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "trace_ids": [],
        }


def saved(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Spell what a cell shows that was answered without a call: the calls of old, and what they took then."""
    return {**metrics, "request_count": 0, "latency_ms": 0.0}


@dataclass(frozen=True, slots=True)
class PromptUse:
    """Which prompt made a call, filled with what; `missing` variables rendered empty."""

    prompt_id: int | None = None
    prompt_name: str | None = None
    version_number: int | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


def log_fields(
    call: Call,
    *,
    provider: str,
    function_name: str,
    price: float,
    times_us: tuple[int, int],
    metadata: Mapping[str, str],
    prompt: PromptUse,
    warning: Issue | None = None,
    error: Issue | None = None,
) -> dict[str, Any]:
    """Spell a call as a request is logged (E1), times in microseconds since 1970."""
    status, error_type, message = _status(prompt, warning, error)
    return {
        "provider": provider,
        "model": call.model or "unknown",
        "input": call.input,
        "output": call.output,
        "request_start_time": times_us[0],
        "request_end_time": max(times_us),
        "parameters": call.parameters,
        "tags": [],
        "metadata": {**metadata, **SOURCE},
        "prompt_name": prompt.prompt_name,
        "prompt_id": prompt.prompt_id,
        "prompt_version_number": prompt.version_number,
        "prompt_input_variables": dict(prompt.variables),
        "input_tokens": call.usage.input,
        "output_tokens": call.usage.output,
        "price": price,
        "function_name": function_name,
        "api_type": call.api_type,
        "status": status,
        "error_type": error_type,
        "error_message": None if message is None else message[:MAX_ERROR_MESSAGE_CHARS],
    }


def _status(
    prompt: PromptUse, warning: Issue | None, error: Issue | None
) -> tuple[str, str | None, str | None]:
    if error is not None:
        # a partial answer is a warning by 2.1, also where nothing of it can be used
        return (WARNING if error[0] == PARTIAL_RESPONSE else ERROR), error[0], error[1]
    if warning is not None and warning[0] == PARTIAL_RESPONSE:
        return WARNING, *warning
    if prompt.missing:
        names = ", ".join(prompt.missing[:20])
        return WARNING, VARIABLE_MISSING, f"Rendered empty, for the value was missing or empty: {names}"
    if warning is not None:
        return WARNING, *warning
    return SUCCESS, None, None
