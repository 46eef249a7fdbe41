"""JSON of bodies, read strictly: what cannot be stored and given back is refused before a rule sees it."""

import math
import re
from typing import Any

from pydantic_core import from_json
from starlette.requests import Request

from storage.domain.errors import Malformed

# A number that may overflow: an exponent of three digits, or more digits than a float holds.
_MAYBE_HUGE = re.compile(rb"\d[eE]\+?\d{3}|\d{309}")


def load_json(body: bytes) -> Any:
    """Read a JSON text; NaN, infinite numbers, lone surrogates and nesting over 200 are no JSON here.

    Raises:
        Malformed: it is none; the message says where.
    """
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise Malformed(f"The body is no valid JSON: {error}") from error
    if _MAYBE_HUGE.search(body) and _has_infinite(value):
        raise Malformed("The body is no valid JSON: a number is too large")
    return value


def keep_json(request: Request, body: bytes) -> None:
    """Read the body and keep it where the framework will look for it, if it says that it is JSON."""
    if body and "json" in request.headers.get("content-type", ""):
        request._json = load_json(body)  # noqa: SLF001 - where starlette itself keeps a body that was parsed


def _has_infinite(value: Any) -> bool:
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, dict):
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)
        elif isinstance(item, float) and math.isinf(item):
            return True
    return False
