"""Wire shapes of the search of request logs and of sums over them."""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from api.schemas.base import Answer, Body, example
from api.schemas.filters import BodyGroup, FreeText, SortBy, SortOrder
from storage.domain.filters import EVERYTHING
from storage.domain.prompts import MAX_INTEGER
from storage.domain.words import query_words
from storage.request_search import FoundLogs, SearchQuery

Number = Annotated[int, Field(ge=1, le=MAX_INTEGER)]


class SearchBody(Body):
    """What to search for; without filters and words all logs match, the newest first."""

    model_config = example(
        {
            "filter_group": {
                "logic": "AND",
                "filters": [
                    {"field": "provider_type", "operator": "is", "value": "openai"},
                    {"field": "metadata", "operator": "key_equals", "nested_key": "user", "value": "ada"},
                ],
            },
            "q": "spider",
            "sort_by": "cost",
            "sort_order": "desc",
            "per_page": 50,
        }
    )

    filter_group: BodyGroup | None = None
    q: FreeText | None = None
    sort_by: SortBy | None = None
    sort_order: Annotated[SortOrder | None, Field(description="With sort_by only; default desc.")] = None
    page: Number = 1
    per_page: Annotated[int, Field(ge=1, le=100)] = 10
    include_prompt_name: Annotated[bool, Field(description="Adds `prompt_name` to each item.")] = False
    as_of: Annotated[
        Annotated[int, Field(ge=0, le=MAX_INTEGER)] | None,
        Field(description="From the answer of an earlier page: logs that came later do not count."),
    ] = None

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.sort_order is not None and self.sort_by is None:
            raise ValueError("sort_order must be given together with sort_by")
        return self

    def query(self) -> SearchQuery:
        return SearchQuery(
            group=EVERYTHING if self.filter_group is None else self.filter_group.group,
            words=query_words(self.q),
            sort_by=self.sort_by,
            descending=self.sort_order != "asc",
            as_of=self.as_of,
        )


class DeleteLogsBody(Body):
    """Which logs to delete."""

    model_config = example(
        {
            "filter_group": {
                "filters": [
                    {"field": "metadata", "operator": "key_equals", "nested_key": "user", "value": "ada"}
                ]
            }
        }
    )

    filter_group: BodyGroup


class RequestItem(Answer):
    """A logged request in a list: everything but its texts, variables and parameters."""

    # `prompt_name` is left out where it is not asked for
    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    id: int
    request_id: int
    provider: str
    model: str
    request_start_time: str
    request_end_time: str
    latency_ms: float
    tags: list[str]
    metadata: dict[str, str]
    prompt_id: int | None
    prompt_version_number: int | None
    prompt_name: str | None = None
    input_tokens: int
    output_tokens: int
    price: float
    function_name: str
    score: int | None
    scores: dict[str, int]
    api_type: str | None
    status: str
    error_type: str | None
    error_message: str | None
    created_at: str


class SearchAnswer(Answer):
    """A page of requests; `total` and `pages` count all that match."""

    success: Literal[True] = True
    items: list[RequestItem]
    page: int
    per_page: int
    total: int
    pages: int
    as_of: Annotated[int, Field(description="Sent with the next pages, they tell of the same moment.")]

    @classmethod
    def of(cls, found: FoundLogs, *, prompt_names: bool) -> "SearchAnswer":
        hidden = set() if prompt_names else {"prompt_name"}
        # what is not set is not sent
        return cls(
            success=True,
            items=[_item(row, hidden) for row in found.items],
            page=found.page,
            per_page=found.per_page,
            total=found.total,
            pages=found.pages,
            as_of=found.as_of,
        )


def _item(row: dict[str, Any], hidden: set[str]) -> RequestItem:
    return RequestItem.model_validate({name: value for name, value in row.items() if name not in hidden})


class Sums(Answer):
    """Sums over requests; cost as callers gave it, times in milliseconds, quantiles approximate."""

    requests: int
    errors: int
    input_tokens: int
    output_tokens: int
    cost: float
    latency_ms_avg: float | None
    latency_ms_p50: float | None
    latency_ms_p95: float | None


class DaySums(Sums):
    """Sums of one day (of request_start_time, UTC) and model."""

    date: str
    model: str


class AnalyticsAnswer(Answer):
    """Sums over the requests that match, and by day and model, the oldest day first."""

    success: Literal[True] = True
    totals: Sums
    series: Annotated[list[DaySums], Field(description="At most the newest 10,000.")]
