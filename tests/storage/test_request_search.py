"""Searches over files, their indexes and the tail find what the rules find."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain.filter_match import Subject, matches, matches_words
from storage.domain.filters import parse_filter_group
from storage.domain.keys import Principal
from storage.domain.words import query_words
from storage.engine import log_parts, log_tails, log_words
from storage.engine.lru import Lru
from storage.log_deletion import delete_log
from storage.log_flush import flush_logs
from storage.log_index import index_logs
from storage.request_search import SearchQuery, find_request_ids, search_requests
from storage.settings import Settings
from storage.store import Store, open_store
from storage.suggestions import FIELDS, SuggestionQuery, list_suggestions
from storage.workspaces import bootstrap, find_key
from tests.conftest import KEY
from tests.filtering import GROUPS, TEXTS, logs
from tests.logs import add_logs

Case = tuple[Store, Principal, dict[int, dict[str, Any]]]


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    """Random logs: in an indexed file, one with signs alone, one without, and the tail; some are deleted."""
    home: Path = tmp_path_factory.mktemp("search")
    store = open_store(Settings(home=home, api_key=KEY))
    bootstrap(store)
    known = find_key(store, KEY)
    assert known is not None
    fields: dict[int, dict[str, Any]] = {}
    drawn = _drawn(120)
    for at, one in enumerate(drawn):
        fields |= dict.fromkeys(add_logs(store, 1, **one), one)
        if at in {30, 60, 90}:
            flush_logs(store)
            if at != 90:
                with pytest.MonkeyPatch.context() as patch:
                    if at == 60:
                        patch.setattr(log_words, "_MOST_WORDS", 0)
                        patch.setattr(log_words, "_BYTES_A_WORD", 0)
                    index_logs(store, from_bytes=0)
    for log_id in sorted(fields)[5::30]:
        delete_log(store, known.principal, log_id)
        del fields[log_id]
    yield store, known.principal, fields
    store.close()


def _drawn(count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    @settings(max_examples=1, database=None, derandomize=True, deadline=None)
    @given(st.lists(logs(), min_size=count, max_size=count))
    def draw(some: list[dict[str, Any]]) -> None:
        found[:] = some

    draw()
    return found


@settings(max_examples=40, deadline=None)
@given(GROUPS, st.none() | TEXTS, st.booleans(), st.booleans(), st.booleans())
def test_a_search_finds_what_matches_by_rule(
    case: Case, group: dict[str, Any], q: str | None, oldest_first: bool, are_large: bool, told_once: bool
) -> None:
    store, who, fields = case
    with pytest.MonkeyPatch.context() as patch:
        if told_once:
            patch.setattr(log_parts, "_MOST_TEXTS", 0)
        if are_large:
            patch.setattr(log_parts, "_LARGE_BYTES", 0)
            patch.setattr(log_tails, "_LARGE_BYTES", 0)
        # what was counted in another way is not asked
        patch.setattr(store.lake, "counts", Lru(1_000))
        _finds_what_matches(store, who, fields, group, q, oldest_first)


def _finds_what_matches(
    store: Store,
    who: Principal,
    fields: dict[int, dict[str, Any]],
    group: dict[str, Any],
    q: str | None,
    oldest_first: bool,
) -> None:
    asked, words = parse_filter_group(group), query_words(q)
    wanted = [
        log_id
        for log_id, one in sorted(fields.items(), reverse=True)
        if matches(asked, Subject(log_id, one, {})) and matches_words(words, Subject(log_id, one, {}))
    ]
    query = SearchQuery(asked, words)
    found = search_requests(store, who, query, page=1, per_page=100)
    assert ([item["id"] for item in found.items], found.total) == (wanted[:100], len(wanted))
    second = search_requests(store, who, query, page=2, per_page=7)
    assert [item["id"] for item in second.items] == wanted[7:14]
    sort = SearchQuery(asked, words, "cost", not oldest_first)
    by_cost = sorted(wanted, key=lambda log_id: fields[log_id]["price"], reverse=not oldest_first)
    assert find_request_ids(store, who.workspace_id, sort, limit=200) == by_cost


@pytest.mark.parametrize("logic", ["AND", "OR"])
def test_as_many_texts_as_may_be_asked_for_at_once_are_found(case: Case, logic: str) -> None:
    store, who, fields = case
    one = {"field": "output_text", "operator": "contains", "value": "a"}
    texts = [{**one, "value": "a" * (1 + number % 2)} for number in range(100)]
    asked = parse_filter_group({"logic": logic, "filters": texts})
    wanted = [log_id for log_id, log in fields.items() if matches(asked, Subject(log_id, log, {}))]
    assert search_requests(store, who, SearchQuery(asked), page=1, per_page=5).total == len(wanted)


@pytest.mark.parametrize("field", FIELDS)
def test_suggestions_are_what_logs_have_by_frequency(case: Case, field: str) -> None:
    store, who, fields = case
    for key in ["a", "a.b"] if field.endswith("_values") else [None]:
        counted: Counter[str] = Counter()
        for log_id, one in fields.items():
            counted.update({value for value in _values(field, key, Subject(log_id, one, {})) if value})
        wanted = sorted((v for v in counted if len(v) <= 256), key=lambda value: (-counted[value], value))
        assert list_suggestions(store, who, SuggestionQuery(field, key=key)) == wanted[:100]


def _values(field: str, key: str | None, log: Subject) -> set[str | None]:
    from storage.domain import filter_match as match  # noqa: PLC0415

    if field.endswith("_values"):
        of = {
            "metadata_values": "metadata",
            "output_values": "output",
            "input_variable_values": "input_variables",
        }
        return {value for name, value in match._pairs(of[field], log) if name == key}
    if field in {"tags", "metadata_keys", "tool_names", "output_keys", "input_variable_keys"}:
        return set(match._elements(field, log))
    column = {"engine": "model", "provider_type": "provider", "prompt": "prompt_name"}.get(field, field)
    value = log.fields[column]
    return set() if value is None else {str(value)}
