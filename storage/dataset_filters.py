"""Dynamic datasets: what a filter of request logs names, and its rows as segments."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from storage.domain.datasets import LinkKind
from storage.domain.filters import Group, OneOf, Range, leaves, parse_filter_group
from storage.domain.history import HistoryQuery, check_history
from storage.domain.imports import Imported, ImportTarget
from storage.domain.operations import Operation
from storage.engine.catalog import Connection
from storage.engine.rows.prompt_labels import select_labels_named
from storage.engine.rows.prompts import find_link
from storage.history_imports import settle_history, write_requests
from storage.store import Store

Report = Callable[[float, int], None]
_DIRECT: tuple[LinkKind, ...] = ("prompt_version", "prompt_label")


def check_filter(store: Store, workspace_id: int, filter_params: Mapping[str, Any]) -> None:
    """Raise unless parameters make sense now.

    Raises:
        Invalid: a filter is wrong, a field unknown, or a title too long.
        NotFound: a prompt, version or label is unknown.
    """
    query = query_of(filter_params)
    check_history(query, ("body",))
    settle_history(store, workspace_id, query)


def query_of(filter_params: Mapping[str, Any]) -> HistoryQuery:
    """Read `filter_params`, as a caller sent them."""
    given = filter_params.get
    group = given("filter_group")
    start, end = given("start_time"), given("end_time")
    return HistoryQuery(
        filter_group=None if group is None else json.dumps(group, sort_keys=True),
        q=given("q"),
        sort_by=given("sort_by"),
        descending=given("sort_order") != "asc",
        prompt_id=given("prompt_id"),
        prompt_version_id=given("prompt_version_id"),
        prompt_label_id=given("prompt_label_id"),
        start_time=None if start is None else datetime.fromisoformat(start),
        end_time=None if end is None else datetime.fromisoformat(end),
        limit=given("limit"),
        variables=tuple(given("variables_to_parse") or ()),
        fields=tuple(given("include_fields") or ()),
    )


def find_links(
    store: Store, workspace_id: int, filter_params: Mapping[str, Any]
) -> tuple[tuple[LinkKind, int], ...]:
    """Return the prompts, versions and labels that parameters ask for; not what they exclude."""
    group = parse_filter_group(filter_params.get("filter_group") or {})
    with store.catalog.read() as connection:
        prompts = _prompts(connection, workspace_id, group)
        if filter_params.get("prompt_id") is not None:
            prompts.add(filter_params["prompt_id"])
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
    for kind in _DIRECT:
        if filter_params.get(f"{kind}_id") is not None:
            found.add((kind, filter_params[f"{kind}_id"]))
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
    query = query_of(operation.spec["history"])
    spec = settle_history(store, operation.workspace_id, query)
    return write_requests(store, operation.workspace_id, spec, target, report)
