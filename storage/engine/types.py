"""Column types of the databases that behave alike on every dialect."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

_ISO = "%Y-%m-%dT%H:%M:%S.%fZ"


class UtcTime(sa.types.TypeDecorator[datetime]):
    """An aware UTC moment, kept as ISO 8601 text with microseconds: it sorts as text and reads as time."""

    impl = sa.String(27)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> str | None:  # noqa: ARG002
        return None if value is None else value.astimezone(UTC).strftime(_ISO)

    def process_result_value(self, value: Any, dialect: Any) -> datetime | None:  # noqa: ARG002
        return None if value is None else datetime.fromisoformat(value)
