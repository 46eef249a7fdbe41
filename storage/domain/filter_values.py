"""Values of filters as clients write them: texts, numbers (also as text), times (a date alone is its day)."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from storage.domain.request_logs import parse_moment_us, to_us

Bound = int | float | None
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_WHOLE = re.compile(r"[+-]?\d{1,400}")
_MOST = 2**63 - 1
_DAY_US = 86_400_000_000
_PAIR = 2
MOST_TEXT_CHARS = 10_000


def read_text(value: Any) -> str:
    """Return a text; numbers and booleans count as their JSON text.

    Raises:
        ValueError: it is neither.
    """
    if not isinstance(value, str | int | float):
        raise ValueError("must be a string")  # noqa: TRY004 - told to the client with its path
    if isinstance(value, str) and len(value) > MOST_TEXT_CHARS:
        raise ValueError(f"must have at most {MOST_TEXT_CHARS} characters")
    return spell(value)


def spell(value: Any) -> str:
    """Spell a JSON scalar as text: a string as it is, 1.0 as 1, true and false in small letters."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:  # noqa: PLR2004
        return str(int(value))
    return repr(value)


def read_number(value: Any) -> int | float:
    """Return a number, also from text.

    Raises:
        ValueError: it is none, not finite, or beyond 64 bits.
    """
    if isinstance(value, str):
        value = _number_of(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")  # noqa: TRY004
    if not -_MOST <= value <= _MOST:  # also refuses NaN
        raise ValueError("must be a number within 64 bits")
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _number_of(text: str) -> int | float | None:
    if not text.isascii() or "_" in text:
        return None
    try:
        return int(text) if _WHOLE.fullmatch(text) else float(text)
    except ValueError:
        return None


def read_member(value: Any, *, whole: bool) -> int | float | None:
    """Return a number that a field can equal; None when no value of the field can (3.5 of whole numbers)."""
    number = read_number(value)
    if not whole:
        return float(number)
    return number if isinstance(number, int) else None


def number_range(operator: str, value: Any, *, whole: bool) -> tuple[Bound, Bound]:
    """Return the inclusive bounds that gt, gte, lt, lte or between mean.

    Raises:
        ValueError: a bound is missing or no number.
    """
    if operator == "between":
        low, high = _pair(value)
        return _low(read_number(low), whole), _high(read_number(high), whole)
    number = read_number(value)
    if operator == "gte":
        return _low(number, whole), None
    if operator == "lte":
        return None, _high(number, whole)
    if operator == "gt":
        return (math.floor(number) + 1 if whole else math.nextafter(float(number), math.inf)), None
    return None, (math.ceil(number) - 1 if whole else math.nextafter(float(number), -math.inf))


def _low(number: float, whole: bool) -> int | float:  # noqa: FBT001
    return math.ceil(number) if whole else float(number)


def _high(number: float, whole: bool) -> int | float:  # noqa: FBT001
    return math.floor(number) if whole else float(number)


def _pair(value: Any) -> tuple[Any, Any]:
    if isinstance(value, Mapping) and set(value) == {"min", "max"}:
        return value["min"], value["max"]
    if not isinstance(value, list) or len(value) != _PAIR or None in value:
        raise ValueError("must be two bounds, [low, high]")
    return value[0], value[1]


def time_span(operator: str, value: Any) -> tuple[int | None, int | None]:
    """Return the inclusive bounds, in microseconds since 1970, that is, before, after or between mean.

    Raises:
        ValueError: a bound is missing or no time.
    """
    if operator == "between":
        low, high = _pair(value)
        return _moments(low)[0], _moments(high)[1]
    first, last = _moments(value)
    if operator == "is":
        return first, last
    return (None, first - 1) if operator == "before" else (last + 1, None)


def _moments(value: Any) -> tuple[int, int]:
    """The first and last microsecond of a moment, or of a day in UTC."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("must be a time: ISO 8601, or a number of seconds or milliseconds")  # noqa: TRY004
    if isinstance(value, str) and _DAY.fullmatch(value):
        try:
            day = date.fromisoformat(value)
        except ValueError as error:
            raise ValueError("is no day of the calendar") from error
        start = to_us(datetime(day.year, day.month, day.day, tzinfo=UTC))
        return start, start + _DAY_US - 1
    moment = parse_moment_us(value)
    return moment, moment
