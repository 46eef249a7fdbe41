"""Suggestions from sums of dictionaries are those of a count of every log, whatever becomes of the files."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.filters import parse_filter_group
from storage.domain.words import fold
from storage.engine import log_suggest
from storage.engine.log_suggest import prefix_bounds
from storage.engine.log_tally import Tallies
from storage.log_compaction import compact_logs
from storage.log_deletion import delete_log
from storage.log_flush import flush_logs
from storage.log_index import index_logs
from storage.store import Store
from storage.suggestions import SuggestionQuery, list_suggestions
from storage.workspaces import find_key
from tests.conftest import KEY
from tests.logs import add_logs


def logged(store: Store, users: Sequence[str]) -> list[int]:
    """Log once for each user, in a file with a dictionary."""
    made = [log_id for user in users for log_id in add_logs(store, 1, metadata={"user": user})]
    flush_logs(store)
    index_logs(store, from_bytes=0)
    return made


def users(store: Store, prefix: str = "", scope: str = "{}") -> list[str]:
    known = find_key(store, KEY)
    assert known is not None
    group = parse_filter_group({"filters": [{"value": scope, "nested_key": "team"}]} if scope != "{}" else {})
    return list_suggestions(
        store, known.principal, SuggestionQuery("metadata_values", prefix, "user", group=group)
    )


def ranked(held: Counter[str]) -> list[str]:
    return [user for user, count in sorted(held.items(), key=lambda pair: (-pair[1], pair[0])) if count]


def test_sums_follow_files_that_come_change_and_go(store: Store) -> None:
    held: Counter[str] = Counter()
    ids: dict[str, list[int]] = {}
    for batch in (["ada", "bob", "ada"], ["cem"] * 4, ["bob", "dora"]):
        for user, log_id in zip(batch, logged(store, batch), strict=True):
            ids.setdefault(user, []).append(log_id)
        held.update(batch)
        assert users(store) == ranked(held)
        assert users(store, "B") == ["bob"]
    add_logs(store, 5, metadata={"user": "eve"})  # in the tail
    held["eve"] += 5
    assert users(store) == ranked(held)
    known = find_key(store, KEY)
    assert known is not None
    delete_log(store, known.principal, ids["cem"][0])
    delete_log(store, known.principal, ids["dora"][0])
    held["cem"] -= 1
    held["dora"] -= 1
    assert users(store) == ranked(held)
    flush_logs(store)
    tomorrow = replace(store, now=lambda: store.now() + timedelta(days=1))
    assert compact_logs(tomorrow, rewrite_all=True).files_after == 1
    assert users(store) == ranked(held)
    index_logs(store, from_bytes=0)
    assert users(store) == ranked(held)
    assert users(store, "e") == ["eve"]


def test_of_very_many_values_the_newest_files_are_counted_and_any_prefix_is_found(
    store: Store,
) -> None:
    store.lake.tallies = Tallies(most_values=4)
    logged(store, ["Kim", "kim", "old", "\u212aim", "\u017fam"])
    logged(store, ["new 1", "new 2", "new 2"])
    logged(store, ["new 3", "Sam"])
    assert users(store) == ["new 2", "Sam", "new 1", "new 3"]
    assert users(store, "KI") == ["Kim", "kim", "\u212aim"]
    assert users(store, "s") == ["Sam", "\u017fam"]
    assert users(store, "new") == ["new 2", "new 1", "new 3"]
    assert users(store, "") == users(store)
    logged(store, ["new 4", "new 3"])
    assert users(store) == ["new 3", "Sam", "new 4"]


def test_once_there_are_fewer_values_all_are_counted_again(store: Store) -> None:
    store.lake.tallies = Tallies(most_values=2)
    ids = logged(store, ["a", "b", "c"]) + logged(store, ["d"])
    assert users(store) == ["d"]
    known = find_key(store, KEY)
    assert known is not None
    for log_id in ids[1:3]:
        delete_log(store, known.principal, log_id)
    compact_logs(store, rewrite_all=True)
    index_logs(store, from_bytes=0)
    assert users(store) == ["a", "d"]


def test_a_scope_reads_the_newest_files_that_may_match(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for user, team in (("a", "red"), ("b", "red"), ("c", "blue"), ("d", "blue")):
        add_logs(store, 20, metadata={"user": user, "team": team})
        flush_logs(store)
        index_logs(store, from_bytes=0)
    assert users(store, scope="red") == ["a", "b"]
    monkeypatch.setattr(log_suggest, "MOST_SCOPED", 20)
    # dictionaries rule out the files of the other team
    assert users(store, scope="red") == ["b"]
    add_logs(store, 1, metadata={"user": "e", "team": "red"})  # what has just come always counts
    assert users(store, scope="red") == ["b", "e"]


@given(st.text(max_size=4), st.text(max_size=3))
def test_bounds_hold_every_text_that_begins_alike(prefix: str, more: str) -> None:
    bounds = prefix_bounds(prefix)
    if prefix and all(char.isascii() for char in prefix):
        assert bounds
    for text in {
        prefix,
        prefix.upper(),
        prefix.lower(),
        prefix.replace("s", "\u017f").replace("K", "\u212a"),
    }:
        if bounds and fold(text) == fold(prefix):
            whole = (text + more).encode(errors="surrogatepass")
            assert any(low.encode() <= whole < high.encode() for low, high in bounds)
