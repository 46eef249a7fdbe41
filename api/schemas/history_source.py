"""Wire shape of the request history as a source of rows."""

from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from api.schemas.base import Body, OperationId, WireInt, example
from api.schemas.filters import AskedGroup, BodyGroup, FreeText, SortBy, SortOrder, SourceGroup
from api.schemas.moments import LastMoment, Moment
from storage.domain.history import MOST_REQUESTS, HistoryQuery
from storage.domain.prompts import MAX_INTEGER

# an empty list says the same as none
_SOME = AfterValidator(lambda names: names or None)
Id = Annotated[WireInt, Field(ge=1, le=MAX_INTEGER)]


class _History(Body):
    """What both imports of requests take."""

    request_log_ids: Annotated[list[Id] | None, Field(min_length=1, max_length=MOST_REQUESTS)] = None
    q: FreeText | None = None
    sort_by: SortBy | None = None
    sort_order: Annotated[SortOrder | None, Field(description="Together with sort_by.")] = None
    limit: Annotated[
        int | None, Field(ge=1, le=MOST_REQUESTS, description=f"At most; default {MOST_REQUESTS}.")
    ] = None
    variables_to_parse: Annotated[
        list[str] | None, _SOME, Field(description="Input variables; each becomes a column.")
    ] = None
    include_fields: Annotated[
        list[str] | None,
        _SOME,
        Field(description="Fields of a request, latency_ms, prompt_label, metadata.<key> or score.<name>."),
    ] = None
    metadata_cost_breakdown_key: str | None = None

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if (self.sort_by is None) != (self.sort_order is None):
            raise ValueError("sort_by and sort_order must be given together")
        return self

    def _query(self, group: AskedGroup | None) -> HistoryQuery:
        return HistoryQuery(
            ids=None if self.request_log_ids is None else tuple(self.request_log_ids),
            filter_group=None if group is None else group.spelled,
            q=self.q,
            sort_by=self.sort_by,
            descending=self.sort_order != "asc",
            cost_breakdown_key=self.metadata_cost_breakdown_key,
            limit=self.limit,
            variables=tuple(self.variables_to_parse or ()),
            fields=tuple(self.include_fields or ()),
        )


class RequestLogsSource(_History):
    """Logged requests, newest first, or those of the ids in their order; what is given is ANDed."""

    type: Literal["request_logs"]
    filter_group: SourceGroup | None = None
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

    def query(self) -> HistoryQuery:
        return replace(
            self._query(self.filter_group),
            prompt_id=self.prompt_id,
            prompt_version_id=self.prompt_version_id,
            prompt_label_id=self.prompt_label_id,
            start_time=self.start_time,
            end_time=self.end_time,
        )


class ImportRequestLogsBody(_History):
    """Logged requests for a sheet that is there (E13): those of some ids, or those that match."""

    model_config = example(
        {
            "filter_group": {"filters": [{"field": "status", "operator": "is", "value": "ERROR"}]},
            "q": "timeout",
            "sort_by": "latency_ms",
            "sort_order": "desc",
            "include_fields": ["model", "latency_ms"],
            "limit": 1000,
        }
    )

    filter_group: BodyGroup | None = None
    operation_id: Annotated[
        OperationId | None, Field(description="A repeat with the same body starts nothing.")
    ] = None

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        if (self.request_log_ids is None) == (self.filter_group is None):
            raise ValueError("exactly one of request_log_ids and filter_group must be given")
        if self.filter_group is None and not (self.q is None and self.sort_by is None):
            raise ValueError("q, sort_by and sort_order go with filter_group only")
        return self

    def query(self) -> HistoryQuery:
        return self._query(self.filter_group)
