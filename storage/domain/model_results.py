"""Results of model calls that answer equal computations: what is kept of one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ModelResult:
    """A value and the request_metrics of the calls that gave it, under the SHA-256 of what was asked."""

    key: bytes
    value: Any
    metrics: Mapping[str, Any]
