"""Dynamic datasets: what a filter of request logs names, and its rows as segments."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from storage.domain.datasets import LinkKind
from storage.domain.filters import EVERYTHING, Group, OneOf, Range, leaves, parse_filter_group
from storage.domain.history import MOST_REQUESTS, NO_MATCH, HistoryQuery, HistorySpec, check_history
from storage.domain.imports import Imported, ImportRefused, ImportTarget
from storage.domain.operations import Operation
from storage.domain.words import query_words
from storage.engine.catalog import Connection
from storage.engine.rows.prompt_labels import select_labels_named
from storage.engine.rows.prompts import find_link
from storage.history_imports import write_requests
from storage.request_search import SearchQuery, find_request_ids
from storage.store import Store

Report = Callable[[float, int], None]


@dataclass(frozen=True, slots=True)
class DatasetFilter:
    """What a dynamic dataset asks of request logs, and which columns it makes of them."""

    group: Group = EVERYTHING
    q: str | None = None
    sort_by: str | None = None
    sort_order: str | None = None
    limit: int | None = None
    variables: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "DatasetFilter":
        """Read `filter_params`, as a caller sent them."""
        return cls(
            parse_filter_group(value.get("filter_group") or {}),
            value.get("q"),
            value.get("sort_by"),
            value.get("sort_order"),
            value.get("limit"),
            tuple(value.get("variables_to_parse") or ()),
            tuple(value.get("include_fields") or ()),
        )

    @property
    def query(self) -> SearchQuery:
        return SearchQuery(
            group=self.group,
            words=query_words(self.q),
            sort_by=self.sort_by,
            descending=self.sort_order != "asc",
        )


def check_filter(filter_params: Mapping[str, Any]) -> DatasetFilter:
    """Return what parameters ask for.

    Raises:
        Invalid: a filter is wrong, a field unknown, or a title too long.
    """
    asked = DatasetFilter.from_json(filter_params)
    check_history(HistoryQuery(variables=asked.variables, fields=asked.fields), ("body",))
    return asked


def find_links(store: Store, workspace_id: int, group: Group) -> tuple[tuple[LinkKind, int], ...]:
    """Return the prompts, versions and labels that a filter asks for; not what it excludes."""
    with store.catalog.read() as connection:
        prompts = _prompts(connection, workspace_id, group)
        found: set[tuple[LinkKind, int]] = {("prompt", prompt_id) for prompt_id in prompts}
        for number in _values(group, "prompt_version_number"):
            for prompt_id in prompts:
                link = find_link(connection, workspace_id, prompt_id=prompt_id, name=None, number=int(number))
                if link is not None and link.prompt_version_id is not None:
                    found.add(("prompt_version", link.prompt_version_id))
        for name in _values(group, "prompt_label"):
            for label in select_labels_named(connection, workspace_id, str(name)):
                if not prompts or label.prompt_id in prompts:
                    found.add(("prompt_label", label.id))
    return tuple(sorted(found))


def _prompts(connection: Connection, workspace_id: int, group: Group) -> set[int]:
    named: list[tuple[int | None, str | None]] = [(int(one), None) for one in _values(group, "prompt_id")]
    named += [(None, str(one)) for one in _values(group, "prompt")]
    links = [
        find_link(connection, workspace_id, prompt_id=id_, name=name, number=None) for id_, name in named
    ]
    return {link.prompt_id for link in links if link is not None}


def _values(group: Group, field: str) -> list[Any]:
    """Return the values that a field is asked to equal."""
    found: list[Any] = []
    for leaf in leaves(group):
        if leaf.field != field or leaf.negated:
            continue
        if isinstance(leaf.test, OneOf):
            found += leaf.test.values
        elif isinstance(leaf.test, Range) and leaf.test.low is not None and leaf.test.low == leaf.test.high:
            found.append(leaf.test.low)
    return found


def write_filtered(store: Store, operation: Operation, target: ImportTarget, report: Report) -> Imported:
    """Read the logs that a dynamic dataset asks for as they stand now, and write them as segments.

    When it raises, or `report` does, no segment is left.

    Raises:
        ImportRefused: no request matches.
        Unavailable: the disk is full.
    """
    asked = DatasetFilter.from_json(operation.spec["history"])
    limit = MOST_REQUESTS if asked.limit is None else asked.limit
    ids = find_request_ids(store, operation.workspace_id, asked.query, limit=limit)
    if not ids:
        raise ImportRefused(NO_MATCH)
    spec = HistorySpec(
        ids=tuple(ids),
        prompt_id=None,
        version_number=None,
        start_time=None,
        end_time=None,
        limit=None,
        variables=asked.variables,
        fields=asked.fields,
        nothing=False,
    )
    return write_requests(store, operation.workspace_id, spec, target, report)
