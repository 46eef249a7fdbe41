"""Values of filters as clients write them: texts, numbers (also as text), times (a date alone is its day)."""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from storage.domain.request_logs import parse_moment_us, to_us

Bound = int | float | None
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_WHOLE = re.compile(r"[+-]?\d{1,400}")
_MOST = 2**63 - 1
_LARGEST = int(sys.float_info.max)
_DAY_US = 86_400_000_000
_PAIR = 2
MOST_TEXT_CHARS = 10_000
# where the point of a number stands, in digits from its first, when it is spelled without an exponent
_LEAST_POINT, _MOST_POINT = -6, 21


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


def read_texts(value: Any) -> Sequence[str]:
    """Return a text as `read_text` does, of a number both as a whole one and as one with a point.

    Raises:
        ValueError: it is neither text nor number nor boolean.
    """
    text = read_text(value)
    if isinstance(value, str | bool) or not -_LARGEST <= value <= _LARGEST:
        return [text]
    return [text, spell_float(float(value))]


def spell(value: Any) -> str:
    """Spell a JSON scalar as text: a string as it is, 1.0 as 1, true and false in small letters."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:  # noqa: PLR2004
        return str(int(value))
    return repr(value)


def spell_float(value: float) -> str:
    """Spell a number that is not whole as the reader of JSON in SQL does: 1.0, 0.000015, 1e22, 1e-7."""
    exact = Decimal(repr(value)).normalize()
    sign, digits, exponent = exact.as_tuple()
    point = len(digits) + int(exponent)
    if not value or _LEAST_POINT < point <= _MOST_POINT:
        fixed = f"{exact:f}"
        return fixed if "." in fixed else f"{fixed}.0"
    first, *rest = map(str, digits)
    return f"{'-' * sign}{first}{'.' if rest else ''}{''.join(rest)}e{point - 1}"


def read_number(value: Any, *, whole: bool) -> int | float:
    """Return a number, also from text; for `whole` fields an int where it is one.

    Raises:
        ValueError: it is none, not finite, or for whole fields beyond 64 bits.
    """
    if isinstance(value, str):
        value = _number_of(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")  # noqa: TRY004
    if not -_LARGEST <= value <= _LARGEST:  # also refuses NaN
        raise ValueError("must be a finite number")
    if not whole:
        return float(value)
    if not -_MOST <= value <= _MOST:
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
    number = read_number(value, whole=whole)
    return number if not whole or isinstance(number, int) else None


def number_range(operator: str, value: Any, *, whole: bool) -> tuple[Bound, Bound]:
    """Return the inclusive bounds that gt, gte, lt, lte or between mean.

    Raises:
        ValueError: a bound is missing or no number.
    """
    if operator == "between":
        low, high = _pair(value)
        return _low(read_number(low, whole=whole), whole), _high(read_number(high, whole=whole), whole)
    number = read_number(value, whole=whole)
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
