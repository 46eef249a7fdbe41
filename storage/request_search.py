"""Search of request logs: pages of what matches, sums over it, and the ids that an import takes."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from storage.domain.errors import Unavailable
from storage.domain.filters import EVERYTHING, Filter, Group, OneOf, fields_of, leaves
from storage.domain.keys import Principal
from storage.domain.request_logs import DEFAULT_SCORE_NAME, iso_us, to_us
from storage.engine.filter_sql import EVERY_LOG, Condition, condition_of
from storage.engine.log_asked import Asked, Sort
from storage.engine.log_damage import DamagedFileError
from storage.engine.log_lake import LIMIT_S
from storage.engine.log_search import LogSearch, open_search
from storage.engine.rows.scores import select_scores_of_many
from storage.prompt_links import list_labelled
from storage.store import Store

OF_ANSWERS = frozenset({"is_json", "is_tool_call", "is_plain_text", "tool_names", "output_keys", "output"})
MOST_SERIES = 10_000


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What a client searches for: filters and words ANDed; logs above the id `as_of` do not count."""

    group: Group = EVERYTHING
    words: tuple[str, ...] = ()
    sort_by: str | None = None
    descending: bool = True
    as_of: int | None = None

    @property
    def sort(self) -> Sort:
        return Sort(self.sort_by, self.descending)


@dataclass(frozen=True, slots=True)
class FoundLogs:
    """A page of logs, their narrow fields; `as_of` holds later pages at the same moment."""

    items: Sequence[dict[str, Any]]
    page: int
    per_page: int
    total: int
    as_of: int

    @property
    def pages(self) -> int:
        return -(-self.total // self.per_page)


def search_requests(
    store: Store, who: Principal, query: SearchQuery, *, page: int, per_page: int
) -> FoundLogs:
    """Return a page of the logs that match; past the end it is empty.

    Raises:
        Unavailable: too many search at once, or it takes too long.
    """
    with searching(store, who.workspace_id, query) as search:
        total = search.count()
        ids = search.find_ids(query.sort, offset=(page - 1) * per_page, limit=per_page)
        rows = search.read_narrow(ids)
        as_of = search.last_id if query.as_of is None else query.as_of
    with store.logs.read() as connection:
        scores = select_scores_of_many(connection, who.workspace_id, [row["id"] for row in rows])
    items = [_item(row, scores.get(row["id"], {})) for row in rows]
    return FoundLogs(items, page, per_page, total, as_of)


def find_request_ids(
    store: Store, workspace_id: int, query: SearchQuery, *, among: Sequence[int] | None = None, limit: int
) -> list[int]:
    """Return the ids of at most `limit` logs that match, in order; only those `among` some ids, if given.

    It takes as long as it needs.
    """
    chosen = None if among is None else Condition("id IN (SELECT unnest(?))", [list(among)])
    with searching(store, workspace_id, query, also=chosen, limit_s=None) as search:
        return search.find_ids(query.sort, offset=0, limit=limit)


def analyze_requests(store: Store, who: Principal, query: SearchQuery) -> dict[str, Any]:
    """Return sums over the logs that match, and the same by day and model: `totals` and `series`.

    Of the series at most the newest 10,000 are given.
    """
    with searching(store, who.workspace_id, query) as search:
        matching, parameters = search.matching()
        grouped = (
            f"SELECT {_SUMS}, CAST(request_start_time AS DATE) AS day, model, grouping(day) AS whole "  # noqa: S608
            f"FROM ({matching}) GROUP BY GROUPING SETS ((), (day, model)) "
            f"ORDER BY whole DESC, day DESC, model LIMIT {MOST_SERIES + 1:d}"
        )
        found = search.fetch(grouped, parameters)
    totals, *series = found
    return {
        "totals": _sums(totals),
        "series": [
            {"date": row[-3].isoformat(), "model": row[-2], **_sums(row)}
            for row in sorted(series, key=itemgetter(-3, -2))
        ],
    }


_SUM_OF = {
    "requests": "count(*)",
    "errors": "count(*) FILTER (status = 'ERROR')",
    "input_tokens": "coalesce(sum(input_tokens), 0)",
    "output_tokens": "coalesce(sum(output_tokens), 0)",
    # JSON has no infinity
    "cost": f"least(coalesce(sum(price), 0), {sys.float_info.max!r})",
    "latency_ms_avg": "avg(latency_ms)",
    "latency_ms_p50": "approx_quantile(latency_ms, 0.5)",
    "latency_ms_p95": "approx_quantile(latency_ms, 0.95)",
}
_SUMS = ", ".join(_SUM_OF.values())
_WHOLE = frozenset({"requests", "errors", "input_tokens", "output_tokens"})


def _sums(row: Sequence[Any]) -> dict[str, Any]:
    named = dict(zip(_SUM_OF, row, strict=False))
    return {name: int(value) if name in _WHOLE else value for name, value in named.items()}


@contextmanager
def searching(
    store: Store,
    workspace_id: int,
    query: SearchQuery,
    *,
    also: Condition | None = None,
    facets: bool = False,
    limit_s: float | None = LIMIT_S,
) -> Iterator[LogSearch]:
    """Open a search for a block, over the logs as they stand now; `facets`: facts of answers are read.

    It takes at most `limit_s` seconds; None: as long as it needs.

    Raises:
        Unavailable: too many search at once, it takes too long, or a file is damaged.
    """
    asked = Asked(
        condition_of(query.group, _labelled(store, workspace_id, query.group)),
        query.group,
        EVERY_LOG if also is None else also,
        query.words,
        facets=facets or not OF_ANSWERS.isdisjoint(fields_of(query.group)),
        scores="score" in fields_of(query.group),
        through=query.as_of,
    )
    try:
        with open_search(store.lake, store.logs, store.data, workspace_id, asked, limit_s=limit_s) as search:
            yield search
    except DamagedFileError as error:
        # loads what a start does not wait for
        from storage.log_index import forget_broken_index  # noqa: PLC0415

        if forget_broken_index(store, workspace_id):
            raise Unavailable("An index of logs was damaged and is made anew; ask again") from error
        raise


def _labelled(store: Store, workspace_id: int, group: Group) -> dict[str, list[tuple[int, int]]]:
    """What the release labels that a group names point at now."""
    names = {name for one in leaves(group) if one.field == "prompt_label" for name in _values(one)}
    return {
        name: [(one.prompt_id, one.prompt_version_number) for one in list_labelled(store, workspace_id, name)]
        for name in names
    }


def _values(one: Filter) -> Sequence[str]:
    return one.test.values if isinstance(one.test, OneOf) else ()


def _item(row: Mapping[str, Any], scores: Mapping[str, int]) -> dict[str, Any]:
    times = {name: iso_us(to_us(value)) for name, value in row.items() if isinstance(value, datetime)}
    return {
        **row,
        **times,
        "request_id": row["id"],
        "metadata": dict(row["metadata"] or {}),
        "score": scores.get(DEFAULT_SCORE_NAME),
        "scores": dict(scores),
    }
