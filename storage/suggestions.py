"""Suggestions: values that logs have of a field (E3), and how often a key may ask for them."""

from dataclasses import dataclass

from storage.domain.errors import Invalid, Problem
from storage.domain.filters import EVERYTHING, Group
from storage.domain.keys import Principal
from storage.domain.rate_limits import SUGGESTIONS
from storage.domain.request_logs import to_us
from storage.engine.log_suggest import OF_ANSWERS, Wanted, suggest
from storage.engine.log_values import MOST_CHARS
from storage.engine.rows.suggestion_calls import forget_calls, insert_call, select_calls
from storage.request_search import SearchQuery, searching
from storage.store import Store

FIELDS = (
    "engine", "provider_type", "prompt_id", "prompt", "tags", "metadata_keys", "status", "tool_names",
    "output_keys", "input_variable_keys", "metadata_values", "output_values", "input_variable_values",
)  # fmt: skip
WITH_KEY = frozenset({"metadata_values", "output_values", "input_variable_values"})
MOST = 100


@dataclass(frozen=True, slots=True)
class SuggestionQuery:
    """What values are asked for; `key` is that of a field of values, `prompt_id` narrows `prompt`."""

    field: str
    prefix: str = ""
    key: str | None = None
    prompt_id: int | None = None
    group: Group = EVERYTHING


def count_suggestion_call(store: Store, who: Principal) -> None:
    """Count a call of a key, before it is looked at; exact, whichever process it reached.

    Raises:
        RateLimited: 10 calls were counted in the last 60 seconds; this one is not.
    """
    with store.catalog.transaction() as connection:
        now_us = to_us(store.now())
        since_us = SUGGESTIONS.since_us(now_us)
        SUGGESTIONS.check(select_calls(connection, who.key_id, after_us=since_us), now_us)
        forget_calls(connection, who.key_id, through_us=since_us)
        insert_call(connection, who.key_id, now_us)


def list_suggestions(store: Store, who: Principal, query: SuggestionQuery) -> list[str]:
    """Return at most 100 values, the most frequent first, then alphabetically; logs just received count.

    Raises:
        Invalid: the field needs a key.
        Unavailable: too many search at once.
    """
    if query.field in WITH_KEY and query.key is None:
        problem = Problem(("query", "metadata_key"), f"is required with the field {query.field}", "missing")
        raise Invalid(problem)
    if len(query.prefix) > MOST_CHARS:
        # longer values are no suggestions
        return []
    wanted = Wanted(
        query.field,
        query.key if query.field in WITH_KEY else None,
        query.prefix,
        query.prompt_id if query.field == "prompt" else None,
        MOST,
    )
    asked = SearchQuery(group=query.group)
    with searching(store, who.workspace_id, asked, facets=query.field in OF_ANSWERS) as search:
        return suggest(search, wanted, scoped=query.group != EVERYTHING)
