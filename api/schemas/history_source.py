"""Wire shape of the request history as a source of rows."""

from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from api.schemas.base import Body, WireInt
from storage.domain.history import MOST_REQUESTS, HistoryQuery
from storage.domain.prompts import MAX_INTEGER
from storage.domain.request_logs import from_us, parse_moment_us

_DAY_ALONE = len("2026-01-31")

Id = Annotated[WireInt, Field(ge=1, le=MAX_INTEGER)]


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


class RequestLogsSource(Body):
    """Logged requests, newest first, or those of the ids in their order; what is given is ANDed."""

    type: Literal["request_logs"]
    request_log_ids: Annotated[list[Id] | None, Field(min_length=1, max_length=MOST_REQUESTS)] = None
    prompt_id: Id | None = None
    prompt_version_id: Id | None = None
    prompt_label_id: Annotated[Id | None, Field(description="The version that this label names now.")] = None
    start_time: Annotated[
        Annotated[datetime, BeforeValidator(_moment)] | None,
        Field(description="Of request_start_time, inclusive; without zone: UTC."),
    ] = None
    end_time: Annotated[
        Annotated[datetime, BeforeValidator(_last_moment)] | None,
        Field(description="Of request_start_time, inclusive; a day alone is the whole of it."),
    ] = None
    limit: Annotated[
        int | None, Field(ge=1, le=MOST_REQUESTS, description=f"At most; default {MOST_REQUESTS}.")
    ] = None
    variables_to_parse: Annotated[
        list[str] | None, Field(description="Input variables; each becomes a column.")
    ] = None
    include_fields: Annotated[
        list[str] | None,
        Field(description="Fields of a request, latency_ms, prompt_label, metadata.<key> or score.<name>."),
    ] = None
    metadata_cost_breakdown_key: str | None = None

    def query(self) -> HistoryQuery:
        return HistoryQuery(
            ids=None if self.request_log_ids is None else tuple(self.request_log_ids),
            prompt_id=self.prompt_id,
            prompt_version_id=self.prompt_version_id,
            prompt_label_id=self.prompt_label_id,
            start_time=self.start_time,
            end_time=self.end_time,
            limit=self.limit,
            variables=tuple(self.variables_to_parse or ()),
            fields=tuple(self.include_fields or ()),
        )
