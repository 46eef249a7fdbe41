"""What an answer other than success means: which word of 2.1, whether to try again, and when."""

import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from pydantic_core import from_json

from pipelines.providers.protocol import (
    AUTH_ERROR,
    ERROR,
    PARTIAL,
    QUOTA_LIMIT,
    RATE_LIMIT,
    TIMEOUT,
    ProviderFailure,
)

_PAYMENT_REQUIRED, _TOO_MANY, _FIRST_OF_SERVER = 402, 429, 500
_QUOTA_WORDS = ("insufficient_quota", "billing", "credit balance", "quota exceeded", "spending limit")
_MOST_TOLD = 500


def failure_of(status: int, body: bytes, headers: Mapping[str, str]) -> ProviderFailure:
    """Read a response that is no success; header names are in lower case."""
    code, said = _said(body)
    message = f"HTTP {status}: {said}" if said else f"HTTP {status}"
    after_s = retry_after_s(headers)
    about_quota = any(word in f"{code} {said}".lower() for word in _QUOTA_WORDS)
    if status == _PAYMENT_REQUIRED or (status in {400, 403, _TOO_MANY} and about_quota):
        return ProviderFailure(QUOTA_LIMIT, message)
    if status in {401, 403}:
        return ProviderFailure(AUTH_ERROR, message)
    if status == _TOO_MANY:
        return ProviderFailure(RATE_LIMIT, message, again=True, after_s=after_s)
    if status in {408, 504}:
        return ProviderFailure(TIMEOUT, message, again=True, after_s=after_s)
    again = status in {409, 425} or status >= _FIRST_OF_SERVER
    return ProviderFailure(ERROR, message, again=again, after_s=after_s if again else None)


def read_answer(body: bytes) -> Mapping[str, Any]:
    """Read the body of a success.

    Raises:
        ProviderFailure: it is no JSON object, or an error in the clothes of a success.
    """
    try:
        found = from_json(body)
    except ValueError:
        raise ProviderFailure(PARTIAL, "The answer is no JSON: cut off or malformed", again=True) from None
    if not isinstance(found, dict):
        raise ProviderFailure(PARTIAL, "The answer is no JSON object", again=True)
    if found.get("error"):
        _, said = _said(body)
        raise ProviderFailure(ERROR, said or "The answer is an error", again=True)
    return found


def read_vectors(body: Mapping[str, Any], count: int) -> list[list[float]]:
    """Read the embeddings of `count` texts, in their order.

    Raises:
        ProviderFailure: they are not all there.
    """
    found = {at: [float(number) for number in vector] for at, vector in _vectors(body)}
    if found.keys() != set(range(count)) or not all(found.values()):
        raise ProviderFailure(PARTIAL, "The answer has no embedding of each text", again=True)
    return [found[at] for at in range(count)]


def _vectors(body: Mapping[str, Any]) -> Iterator[tuple[int, list[float]]]:
    held = body.get("data")
    for at, one in enumerate(held if isinstance(held, list) else ()):
        match one:
            case {"embedding": list() as vector} if all(type(number) in {int, float} for number in vector):
                place = one.get("index", at)
                yield place if isinstance(place, int) else at, vector


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return how long a response asks callers to wait, in seconds; None when it does not."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        try:
            return max(0.0, float(text) * unit_s)
        except ValueError:
            pass
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except ValueError:
        return None


def _said(body: bytes) -> tuple[str, str]:
    """Return the code and the words of an error's body."""
    try:
        found = from_json(body)
    except ValueError:
        return "", body[:_MOST_TOLD].decode(errors="replace").strip()
    match found:
        case {"error": {"message": str(message), **rest}}:
            return f"{rest.get('code') or ''} {rest.get('type') or ''}", message[:_MOST_TOLD]
        case {"error": str(message)} | {"message": str(message)} | {"detail": str(message)}:
            return "", message[:_MOST_TOLD]
    return "", ""
