"""JSON of bodies, read strictly: what cannot be stored and given back is refused before a rule sees it."""

import json
import math
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json
from starlette.requests import Request

from api.errors import problems_of
from storage.domain.errors import Invalid, Malformed, Problem

Shape = TypeVar("Shape")

# A number that may overflow: an exponent of three digits, or more digits than a float holds. All digits are
# made one first: then finding is a search for fixed bytes, ten times as fast as a pattern.
_ALIKE = bytes.maketrans(b"123456789E", b"000000000e")
_MAYBE_HUGE = (b"0e000", b"0e+000", b"0" * 309)


def load_json(body: bytes, *, deep: bool = False) -> Any:
    """Read a JSON text; NaN, infinite numbers, lone surrogates and nesting over 200 are no JSON here.

    `deep` lets it be nested as deep as filter groups may be.

    Raises:
        Malformed: it is none; the message says where.
        Invalid: it is nested too deep even so.
    """
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        if deep and "recursion limit" in str(error):
            return _load_deep(body)
        raise Malformed(f"The body is no valid JSON: {error}") from error
    if _may_overflow(body) and _has_infinite(value):
        raise Malformed("The body is no valid JSON: a number is too large")
    return value


def _may_overflow(body: bytes) -> bool:
    alike = body.translate(_ALIKE)
    return any(huge in alike for huge in _MAYBE_HUGE)


def _load_deep(body: bytes) -> Any:
    try:
        value = json.loads(body, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise Invalid(Problem(("body",), "is nested too deep", "too_long")) from error
    except ValueError as error:
        raise Malformed(f"The body is no valid JSON: {error}") from error
    if _has_infinite(value):
        raise Malformed("The body is no valid JSON: a number is too large")
    return value


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number")


def validate_json(adapter: TypeAdapter[Shape], body: bytes) -> Shape:
    """Read and validate a body in one pass, for hot paths; here a lone surrogate is a wrong value.

    Raises:
        Malformed: it is no JSON.
        Invalid: it is JSON of another shape, or holds a lone surrogate.
    """
    if b"NaN" in body or b"Infinity" in body:
        load_json(body)  # unless they stand in a text: the shape's parser takes them, but they are no JSON
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        # errors of the input itself stand alone
        if error.errors(include_url=False, include_input=False)[0]["type"] == "json_invalid":
            if _has_lone_surrogate(body):
                raise Invalid(Problem(("body",), "holds a lone surrogate", "string_unicode")) from error
            raise Malformed(f"The body is no valid JSON: {_reason(error)}") from error
        raise Invalid(*problems_of(error.errors(include_url=False), "body")) from error


def validate_value(adapter: TypeAdapter[Shape], value: Any, *within: str) -> Shape:
    """Validate a JSON value that was read before; its problems are told by their place below `within`.

    Raises:
        Invalid: it is of another shape.
    """
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        raise Invalid(*problems_of(error.errors(include_url=False), "body", *within)) from error


def _reason(error: ValidationError) -> str:
    return str(error.errors()[0].get("ctx", {}).get("error", ""))


def _has_lone_surrogate(body: bytes) -> bool:
    """Say whether a body that the strict parser refuses is JSON but for lone surrogates."""
    if rb"\u" not in body:
        return False
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def keep_json(request: Request, body: bytes, *, deep: bool = False) -> Any:
    """Read the body and keep it where the framework will look for it, whatever it says that it is; return it.

    Of an empty body nothing is kept, and None returned.
    """
    if not body:
        return None
    found = load_json(body, deep=deep)
    request._json = found  # noqa: SLF001 - where starlette itself keeps a body that was parsed
    if not request.headers.get("content-type", "").startswith("application/json"):
        # the framework would take it for bytes
        headers = request.headers.mutablecopy()
        headers["content-type"] = "application/json"
        request._headers = headers  # noqa: SLF001 - as above
    return found


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
