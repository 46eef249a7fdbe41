"""Moments on the wire that bound a range: ISO 8601 (without zone: UTC), or a day alone."""

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator

from storage.domain.request_logs import from_us, parse_moment_us

_DAY_ALONE = len("2026-01-31")


def _moment(value: object) -> datetime | None:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return from_us(parse_moment_us(value))
    if value is None or isinstance(value, datetime):
        return value
    raise ValueError("must be a time")


def _last_moment(value: object) -> datetime | None:
    found = _moment(value)
    # a day alone is the whole of it
    if found is not None and isinstance(value, str) and len(value) == _DAY_ALONE:
        return found + timedelta(days=1, microseconds=-1)
    return found


Moment = Annotated[datetime, BeforeValidator(_moment)]
"""The first moment of a range."""

LastMoment = Annotated[datetime, BeforeValidator(_last_moment)]
"""The last moment of a range; a day alone ends it with its last microsecond."""
