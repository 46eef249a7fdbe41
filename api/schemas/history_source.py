"""Wire shape of the request history as a source of rows."""

from typing import Annotated, Literal

from pydantic import Field

from api.schemas.base import Body, WireInt
from api.schemas.moments import LastMoment, Moment
from storage.domain.history import MOST_REQUESTS, HistoryQuery
from storage.domain.prompts import MAX_INTEGER

Id = Annotated[WireInt, Field(ge=1, le=MAX_INTEGER)]


class RequestLogsSource(Body):
    """Logged requests, newest first, or those of the ids in their order; what is given is ANDed."""

    type: Literal["request_logs"]
    request_log_ids: Annotated[list[Id] | None, Field(min_length=1, max_length=MOST_REQUESTS)] = None
    prompt_id: Id | None = None
    prompt_version_id: Id | None = None
    prompt_label_id: Annotated[Id | None, Field(description="The version that this label names now.")] = None
    start_time: Annotated[
        Moment | None,
        Field(description="Of request_start_time, inclusive; without zone: UTC."),
    ] = None
    end_time: Annotated[
        LastMoment | None,
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
