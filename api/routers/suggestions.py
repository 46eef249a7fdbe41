"""Suggestions of values for filters (E3)."""

from collections.abc import Mapping
from typing import Annotated, Literal

from fastapi import Query

from api.deps import OpenStore, Who
from api.openapi import errors
from api.routing import guarded_router, needs
from api.schemas.suggestions import SuggestionAnswer, read_group
from storage import suggestions
from storage.domain.errors import RateLimited
from storage.domain.keys import Principal
from storage.domain.prompts import MAX_INTEGER
from storage.store import Store
from storage.suggestions import SuggestionQuery, count_suggestion_call

router = guarded_router(prefix="/api/public/v2/requests", tags=["request logs"])


def _counted(store: Store, who: Principal, _params: Mapping[str, str]) -> None:
    # before the query is looked at: a call of the wrong shape counts too
    count_suggestion_call(store, who)


Field = Literal[
    "engine", "provider_type", "prompt_id", "prompt", "tags", "metadata_keys", "status", "tool_names",
    "output_keys", "input_variable_keys", "metadata_values", "output_values", "input_variable_values",
]  # fmt: skip


@router.get("/suggestions", summary="Suggest values of a field", responses=errors(RateLimited))
@needs("read", path=_counted)
def list_suggestions(
    store: OpenStore,
    who: Who,
    field: Annotated[Field, Query(description="Whose values.")],
    prefix: Annotated[str | None, Query(description="How values begin, in any case.")] = None,
    metadata_key: Annotated[
        str | None,
        Query(description="With metadata_values, output_values and input_variable_values: the nested key."),
    ] = None,
    prompt_id: Annotated[
        int | None, Query(ge=1, le=MAX_INTEGER, description="With `prompt`: names of this prompt.")
    ] = None,
    filter_group: Annotated[
        str | None, Query(description="A filter group as JSON: values of the requests that match.")
    ] = None,
) -> SuggestionAnswer:
    """List values of a field, the most frequent first, at most 100; 10 calls in 60 seconds a key."""
    group = read_group(filter_group)
    query = SuggestionQuery(field, prefix or "", metadata_key, prompt_id, group)
    return SuggestionAnswer(values=suggestions.list_suggestions(store, who, query))
