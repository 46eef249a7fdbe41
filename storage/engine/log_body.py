"""The body of a log in the tail: compact JSON of its fields, times in microseconds since 1970."""

from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import from_json, to_json

from storage.domain.errors import Invalid
from storage.domain.request_logs import check_finite


def encode_body(fields: Mapping[str, Any]) -> bytes:
    """Encode the fields of a log.

    Raises:
        Invalid: a number in it is too large for JSON.
    """
    body = to_json(fields, inf_nan_mode="constants")
    # The words may stand in a text: only then is it worth looking at every number.
    if b"Infinity" in body or b"NaN" in body:
        problem = check_finite(fields)
        if problem is not None:
            raise Invalid(problem)
    return body


def decode_body(body: bytes) -> dict[str, Any]:
    return cast("dict[str, Any]", from_json(body))
