"""Request logs: what a logged exchange may say, and the blueprint it makes."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from storage.domain.errors import Invalid, Problem, invalid

SUCCESS, WARNING, ERROR = "SUCCESS", "WARNING", "ERROR"
STATUSES = (SUCCESS, WARNING, ERROR)
STATUSES_OF_ERROR_TYPE: Mapping[str, frozenset[str]] = {
    "PROVIDER_RATE_LIMIT": frozenset({WARNING, ERROR}),
    "PROVIDER_QUOTA_LIMIT": frozenset({WARNING, ERROR}),
    "PROVIDER_PARTIAL_RESPONSE": frozenset({WARNING}),
    "VARIABLE_MISSING_OR_EMPTY": frozenset({WARNING}),
    "PROVIDER_TIMEOUT": frozenset({ERROR}),
    "PROVIDER_AUTH_ERROR": frozenset({ERROR}),
    "PROVIDER_ERROR": frozenset({ERROR}),
    "TEMPLATE_RENDER_ERROR": frozenset({ERROR}),
    "UNKNOWN_ERROR": frozenset({WARNING, ERROR}),
}
MAX_TAG_CHARS = 512
MAX_METADATA_KEY_CHARS = 1024
MAX_ERROR_MESSAGE_CHARS = 1024
MAX_IDEMPOTENCY_KEY_CHARS = 255
DEFAULT_SCORE_NAME = "default"
IDEMPOTENCY_HOURS = 24

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Numbers up to this are seconds since 1970 (the year 2603), above it milliseconds.
_MAX_EPOCH_S = 2e10
_MOST_EPOCH = 1e15


def parse_moment_us(value: str | float) -> int:
    """Read a time as microseconds since 1970: ISO 8601 (without zone: UTC), or epoch seconds or milliseconds.

    Raises:
        ValueError: it is no time, or outside the years 1 to 9999.
    """
    if isinstance(value, str):
        return to_us(_iso(value))
    if not abs(value) < _MOST_EPOCH:  # also refuses NaN
        raise ValueError("a time must be a number of seconds or milliseconds")
    seconds = value if value <= _MAX_EPOCH_S else value / 1000
    try:
        return to_us(_EPOCH + timedelta(seconds=seconds))
    except OverflowError as error:
        raise ValueError("the time is outside the years 1 to 9999") from error


def _iso(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.upper() if text.endswith("z") else text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError("must be a time in ISO 8601, or a number of seconds or milliseconds") from error


def to_us(moment: datetime) -> int:
    """Microseconds since 1970 of an aware moment."""
    return (moment - _EPOCH) // _MICROSECOND


def from_us(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def iso_us(microseconds: int) -> str:
    """Spell microseconds since 1970 as ISO 8601 in UTC."""
    return from_us(microseconds).isoformat().replace("+00:00", "Z")


def check_message(message: Mapping[str, Any]) -> Sequence[Any]:
    """Return a message's content blocks: null stands for none, on assistant messages that call tools.

    Raises:
        ValueError: the content is null or absent elsewhere.
    """
    content: Sequence[Any] | None = message.get("content")
    if content is not None:
        return content
    if message["role"] == "assistant" and (message.get("tool_calls") or message.get("function_call")):
        return []
    raise ValueError(
        "content must be an array of content blocks; null only on an assistant message with tool calls"
    )


def check_block(block: Mapping[str, Any]) -> None:
    """Check a content block: it names its type, and a text block has text.

    Raises:
        ValueError: it does not.
    """
    if block["type"] == "text" and not isinstance(block.get("text"), str):
        raise ValueError("a text block must have `text`, a string")


def check_exchange(*, status: str, error_type: str | None, start_us: int, end_us: int) -> None:
    """Check what the fields of a log say together.

    Raises:
        Invalid: it ends before it starts, or the error type does not go with the status.
    """
    if end_us < start_us:
        raise invalid("request_end_time", "must not be before request_start_time")
    if error_type is not None and status not in STATUSES_OF_ERROR_TYPE[error_type]:
        allowed = " or ".join(sorted(STATUSES_OF_ERROR_TYPE[error_type], reverse=True))
        raise invalid("error_type", f"{error_type} goes with status {allowed}, not {status}")


def check_prompt_use(log: Mapping[str, Any]) -> None:
    """Check that a version is of a named prompt.

    Raises:
        Invalid: it is not.
    """
    if log["prompt_version_number"] is not None and log["prompt_id"] is None and log["prompt_name"] is None:
        raise invalid("prompt_version_number", "needs prompt_id or prompt_name")


def check_finite(value: Any, loc: tuple[str, ...] = ("body",)) -> Problem | None:
    """Find a number too large for a JSON number (such as 1e999) anywhere in a value."""
    stack: list[tuple[Any, tuple[str, ...]]] = [(value, loc)]
    while stack:
        item, place = stack.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return Problem(place, "must be a finite number", "finite_number")
        if isinstance(item, Mapping):
            stack.extend((child, (*place, str(key))) for key, child in item.items())
        elif isinstance(item, list | tuple):
            stack.extend((child, (*place, str(index))) for index, child in enumerate(item))
    return None


_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")


def check_idempotency_key(text: str) -> str:
    """Return an idempotency key: 1 to 255 visible characters.

    Raises:
        Invalid: it is empty, longer, or has others.
    """
    if len(text) > MAX_IDEMPOTENCY_KEY_CHARS or not _IDEMPOTENCY_KEY.fullmatch(text):
        raise Invalid(Problem(("header", "Idempotency-Key"), "must be 1 to 255 visible ASCII characters"))
    return text


def blueprint(log: Mapping[str, Any]) -> dict[str, Any] | None:
    """Make the prompt blueprint of an exchange: its input then its output, and the model that answered.

    None when input and output differ in type. `log` has the fields of a stored log.
    """
    given, answer = log["input"], log["output"]
    if given["type"] != answer["type"]:
        return None
    part = "messages" if given["type"] == "chat" else "content"
    template = {"input_variables": [], **given, part: [*given[part], *answer[part]]}
    model = {"provider": log["provider"], "name": log["model"], "parameters": log["parameters"]}
    if log["api_type"] is not None:
        model["api_type"] = log["api_type"]
    return {"prompt_template": template, "commit_message": None, "metadata": {"model": model}}


@dataclass(frozen=True, slots=True)
class Score:
    name: str
    score: int


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which logs of a workspace a reader wants; what is given is ANDed, nothing given means all.

    Times are of `request_start_time`, inclusive. With `ids` the logs come in the order given, each once;
    otherwise newest first, or oldest first when `newest_first` is false. `limit` counts logs.
    """

    ids: tuple[int, ...] | None = None
    prompt_id: int | None = None
    prompt_name: str | None = None
    prompt_version_number: int | None = None
    start_from: datetime | None = None
    start_to: datetime | None = None
    newest_first: bool = True
    limit: int | None = None
