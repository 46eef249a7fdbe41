"""The index finds what a look at every text finds; the dictionary counts what a count of every log counts."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.domain.errors import Unavailable
from storage.domain.filters import parse_filter_group
from storage.domain.keys import Principal
from storage.domain.transcripts import input_text, messages_of, output_text
from storage.domain.words import holds_words, query_words
from storage.engine import log_words
from storage.engine.filter_sql import Condition
from storage.engine.log_asked import Sort
from storage.engine.log_sql import duck
from storage.engine.log_values import FIELDS, holders_query, values_query
from storage.engine.log_words import MOST_CHARS, is_exact, words_query
from storage.engine.rows.log_companions import SIGNS, VALUES, WORDS, select_companions
from storage.leases import LeaseRefused, held_lease
from storage.log_compaction import compact_logs
from storage.log_flush import flush_logs, sweep_log_files
from storage.log_index import INDEX_LEASE, count_unindexed, forget_broken_index, index_logs
from storage.log_pace import is_pouring
from storage.request_search import SearchQuery, search_requests, searching
from storage.store import Store
from tests.logs import add_logs, chat, stored_fields


def paths(store: Store, kind: str) -> list[str]:
    with store.logs.read() as connection:
        return [str(store.data.path(one.key)) for one in select_companions(connection, 1) if one.kind == kind]


def found(store: Store, *words: str) -> list[int]:
    query, parameters = words_query(paths(store, WORDS), words)
    with duck() as connection:
        return sorted(row[0] for row in connection.execute(query, parameters).fetchall())


def counted(store: Store, field: str, key: str = "") -> dict[str | None, int]:
    with duck() as connection:
        return dict(connection.execute(values_query(paths(store, VALUES)), [field, key]).fetchall())


def indexed(store: Store) -> None:
    flush_logs(store)
    index_logs(store, from_bytes=0)


# letters whose case folds in unusual ways among them
_LETTERS = "aAbBß0İıſé_-. \n漢字'\"\\%ΣςǅÅ中1²Ⅷ"  # noqa: RUF001
_TEXTS = st.text(st.sampled_from(_LETTERS) | st.characters(codec="utf-8"), max_size=30)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(texts=st.lists(st.tuples(_TEXTS, _TEXTS), min_size=1, max_size=25), asked=st.lists(_TEXTS, max_size=8))
def test_the_index_finds_what_every_text_holds(
    store: Store, texts: list[tuple[str, str]], asked: list[str]
) -> None:
    logs = [{"input": chat("user", one), "output": chat("assistant", two)} for one, two in texts]
    ids = [add_logs(store, 1, **log)[0] for log in logs]
    indexed(store)
    for q in [*asked, *(one[:3] for one, _ in texts), "user"]:
        words = query_words(q)
        if not words:
            continue
        expected = [
            log_id
            for log_id, log in zip(ids, logs, strict=True)
            if holds_words(words, input_text(messages_of(log["input"])) or "", output_text(log["output"]))
        ]
        assert [i for i in found(store, *words) if i in set(ids)] == expected, words


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    texts=st.lists(st.tuples(_TEXTS, _TEXTS), min_size=1, max_size=12),
    asked=st.lists(_TEXTS, max_size=8),
    most=st.integers(0, 6),
)
def test_signs_rule_out_no_log_that_holds_the_words(
    store: Store, who: Principal, texts: list[tuple[str, str]], asked: list[str], most: int
) -> None:
    logs = [{"input": chat("user", one), "output": chat("assistant", two)} for one, two in texts]
    ids = [add_logs(store, 1, **log)[0] for log in logs]
    flush_logs(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_words, "_MOST_WORDS", most)
        patch.setattr(log_words, "_BYTES_A_WORD", 0)
        index_logs(store, from_bytes=0)
    for q in [*asked, *(one[:9] for one, _ in texts), "user"]:
        words = query_words(q)
        expected = [
            log_id
            for log_id, log in zip(ids, logs, strict=True)
            if holds_words(words, input_text(messages_of(log["input"])) or "", output_text(log["output"]))
        ]
        among = Condition("id IN (SELECT unnest(?))", [ids])
        with searching(store, who.workspace_id, SearchQuery(words=words), also=among) as search:
            assert search.count() == len(expected), words
            assert search.find_ids(Sort(None, descending=False), offset=0, limit=50) == expected, words


def test_logs_with_very_many_words_are_found_by_signs_and_looked_at(store: Store, who: Principal) -> None:
    many = " ".join(f"w{number:05d}x" for number in range(9_000))
    (crowded,) = add_logs(store, 1, input=chat("user", f"haystack {many}"))
    (other,) = add_logs(store, 1, input=chat("user", "haystacks w00001 w99999"))
    indexed(store)
    assert found(store, "haystack") == [other]
    assert len(paths(store, SIGNS)) == 1
    asked = {
        "haystack": [crowded, other],
        "hay": [crowded, other],
        "w00001": [crowded, other],
        "w00001x haystack": [crowded],
        "w99999": [other],
        "needle": [],
        "w0000100": [],
    }
    for q, expected in asked.items():
        with searching(store, who.workspace_id, SearchQuery(words=query_words(q))) as search:
            assert search.find_ids(Sort(None, descending=False), offset=0, limit=9) == expected, q
    assert forget_broken_index(store) == 0
    Path(paths(store, SIGNS)[0]).unlink()
    assert forget_broken_index(store) == 1
    index_logs(store, from_bytes=0)
    assert len(paths(store, SIGNS)) == 1


def test_once_a_segment_has_as_many_words_as_fit_logs_with_few_have_signs(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_words, "_MOST_OF_SEGMENT", 1_000)
    monkeypatch.setattr(log_words, "_BATCH_BYTES", 1)
    monkeypatch.setattr(log_words, "_FETCHED_BYTES", 1)
    ids = [
        add_logs(store, 1, input=chat("user", " ".join(f"t{log}n{word}" for word in range(600))))[0]
        for log in range(4)
    ]
    indexed(store)
    assert found(store, "t0n1", "user") == ids[:1]
    assert found(store, "t3n1") == []
    with searching(store, who.workspace_id, SearchQuery(words=("t3n1",))) as search:
        assert search.find_ids(Sort(), offset=0, limit=9) == ids[3:]


def test_a_letter_of_a_newer_unicode_ends_a_word_where_this_interpreter_does_not_know_it(
    store: Store,
) -> None:
    newer = "\U000143e7"  # of Unicode 16
    (log_id,) = add_logs(store, 1, input=chat("user", f"one{newer}two"))
    indexed(store)
    for word in query_words(f"one{newer}two"):
        assert found(store, word) == [log_id]


def test_long_words_are_compared_up_to_a_length(store: Store) -> None:
    word = "x" * 60
    (log_id,) = add_logs(store, 1, input=chat("user", word))
    indexed(store)
    assert found(store, word) == [log_id]
    assert found(store, "x" * (MOST_CHARS - 1)) == [log_id]
    assert not is_exact([word])
    assert is_exact(["x" * (MOST_CHARS - 1)])
    assert found(store, word, "eight") == [log_id]
    assert found(store, word, "nine") == []


def test_the_dictionary_counts_logs_by_value(store: Store) -> None:
    call = {"id": "1", "function": {"name": "look_up", "arguments": '{"city": "Lima"}'}}
    calls = {"type": "chat", "messages": [{"role": "assistant", "content": [], "tool_calls": [call, call]}]}
    logs: list[dict[str, Any]] = [
        {
            "metadata": {"user": "ada", "plan": "free"},
            "tags": ["a", "b", "a"],
            "prompt_input_variables": {"x": 1},
        },
        {"metadata": {"user": "bob"}, "tags": ["b"], "prompt_id": 7, "prompt_name": "greet"},
        {"metadata": {"user": "ada", "long": "y" * 300}, "output": calls, "model": "o'hara"},
        {
            "output": chat("assistant", '{"a": {"b": [1, 2, 2]}}'),
            "prompt_input_variables": {"x": "1", "y": [1]},
        },
    ]
    for log in logs:
        add_logs(store, 1, **log)
    indexed(store)
    assert counted(store, "metadata_values", "user") == {"ada": 2, "bob": 1}
    assert counted(store, "metadata_keys") == {"user": 3, "plan": 1, "long": 1}
    assert counted(store, "metadata_values", "long") == {None: 1}
    assert counted(store, "tags") == {"a": 1, "b": 2}
    assert counted(store, "engine") == {"gpt-4o": 3, "o'hara": 1}
    assert counted(store, "prompt", "7") == {"greet": 1}
    assert counted(store, "prompt_id") == {"7": 1}
    assert counted(store, "tool_names") == {"look_up": 1}
    assert counted(store, "input_variable_keys") == {"x": 2, "y": 1}
    assert counted(store, "input_variable_values", "x") == {"1": 2}
    assert counted(store, "output_values", "a.b") == {"1": 1, "2": 1}
    assert "a.b" in counted(store, "output_keys")
    assert counted(store, "status") == Counter(stored_fields()["status"] for _ in logs)
    assert len(FIELDS) == 13
    with duck() as connection:
        for value, there in (("ada", True), ("eve", False)):
            query = holders_query(paths(store, VALUES))
            rows = connection.execute(query, ["metadata_values", "user", value]).fetchall()
            assert bool(rows) == there


def test_it_goes_with_its_segment_and_is_made_for_the_new_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.domain.log_compaction.MERGE_FILES", 3)
    for _ in range(3):
        add_logs(store, 2)
        indexed(store)
    old = paths(store, WORDS) + paths(store, VALUES)
    assert len(old) == 6
    compact_logs(store)
    assert paths(store, WORDS) == []  # the new file is small
    assert count_unindexed(store, from_bytes=0) == 1
    index_logs(store, from_bytes=0)
    assert found(store, "eight") == [1, 2, 3, 4, 5, 6]
    now = store.now
    sweep_log_files(replace(store, now=lambda: now() + timedelta(hours=2)))
    assert not any(store.data.path(path).exists() for path in old)
    assert found(store, "eight") == [1, 2, 3, 4, 5, 6]


def test_a_large_file_is_indexed_before_it_takes_the_place_of_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.domain.log_compaction.MERGE_FILES", 2)
    monkeypatch.setattr("storage.log_compaction.INDEX_FROM_BYTES", 0)
    for _ in range(2):
        add_logs(store, 2)
        flush_logs(store)
    compact_logs(store)
    assert count_unindexed(store, from_bytes=0) == 0
    assert found(store, "eight") == [1, 2, 3, 4]
    assert counted(store, "engine") == {"gpt-4o": 4}


@pytest.mark.parametrize("written_before", [1, 2])
def test_a_disk_that_is_full_while_it_is_indexed_leaves_the_old_files_and_no_new_ones(
    store: Store, monkeypatch: pytest.MonkeyPatch, written_before: int
) -> None:
    monkeypatch.setattr("storage.domain.log_compaction.MERGE_FILES", 2)
    monkeypatch.setattr("storage.log_compaction.INDEX_FROM_BYTES", 0)
    for _ in range(2):
        add_logs(store, 2)
        flush_logs(store)
    before = set(store.data.path("logs").rglob("*.parquet"))
    left = [written_before]

    def sync(_path: Path) -> None:
        if not left[0]:
            raise OSError(28, "No space left on device")
        left[0] -= 1

    with monkeypatch.context() as patch:
        patch.setattr("storage.engine.data_root.sync_file", sync)
        with pytest.raises(Unavailable):
            compact_logs(store)
    assert set(store.data.path("logs").rglob("*.parquet")) == before
    assert compact_logs(store).files_after == 1
    assert found(store, "eight") == [1, 2, 3, 4]


def test_in_a_burst_a_file_waits_for_compaction_and_then_for_its_patience(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_logs(store, 2)
    flush_logs(store)
    monkeypatch.setattr("storage.log_index.is_pouring", lambda *_: True)
    assert count_unindexed(store, from_bytes=0) == 0
    assert index_logs(store, from_bytes=0).segments == 0
    now = store.now
    later = replace(store, now=lambda: now() + timedelta(seconds=181))
    assert index_logs(later, from_bytes=0).segments == 1


def test_a_burst_is_told_by_the_files_and_by_what_waits(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pours(seconds: float = 0.0, flush_bytes: int = 1_000_000) -> bool:
        now = store.now
        settings = replace(store.settings, flush_bytes=flush_bytes)
        one = replace(store, now=lambda: now() + timedelta(seconds=seconds), settings=settings)
        with one.logs.read() as connection:
            return is_pouring(one, connection)

    add_logs(store, 6)
    assert not pours()
    assert pours(flush_bytes=100)
    flush_logs(store)
    assert not pours(flush_bytes=100)
    monkeypatch.setattr("storage.domain.log_pace.POURING_ROWS_S", 0.2)
    assert pours()
    assert not pours(seconds=31)


def test_one_that_is_lost_is_made_anew(store: Store) -> None:
    add_logs(store, 2)
    indexed(store)
    assert forget_broken_index(store) == 0
    (path,) = paths(store, WORDS)
    store.data.path(path).unlink()
    assert forget_broken_index(store) == 1
    assert index_logs(store, from_bytes=0).segments == 1
    assert found(store, "eight") == [1, 2]


def test_small_segments_wait_for_compaction_and_two_do_not_index_at_once(store: Store) -> None:
    add_logs(store, 2)
    flush_logs(store)
    assert count_unindexed(store) == 0
    assert index_logs(store).segments == 0
    with held_lease(store, INDEX_LEASE), pytest.raises(LeaseRefused):
        index_logs(store, from_bytes=0)


@pytest.mark.parametrize(
    ("kind", "damage"), [(WORDS, "missing"), (VALUES, "cut"), (WORDS, "overwritten"), (VALUES, "overwritten")]
)
def test_searches_stay_right_where_an_index_is_broken_and_it_is_made_anew(
    store: Store, who: Principal, kind: str, damage: str
) -> None:
    add_logs(store, 3, input=chat("user", "spiders have legs"), metadata={"user": "ada"})
    indexed(store)
    add_logs(store, 1, input=chat("user", "legs again"), metadata={"user": "ada"})
    (path,) = map(Path, paths(store, kind))
    size = path.stat().st_size
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"x" * (size if damage == "overwritten" else size - 1))
    group = parse_filter_group(
        {"filters": [{"field": "metadata", "operator": "key_equals", "nested_key": "user", "value": "ada"}]}
    )
    asked = (SearchQuery(words=("legs",)), SearchQuery(group=group))
    if damage == "overwritten":  # what looks whole is read before it is known
        with pytest.raises(Unavailable, match="is made anew"):
            search_requests(store, who, asked[kind == VALUES], page=1, per_page=10)
    for _ in range(2):
        for query in asked:
            assert search_requests(store, who, query, page=1, per_page=10).total == 4
        index_logs(store, from_bytes=0)
        assert count_unindexed(store, from_bytes=0) == 0
    assert found(store, "legs") == [1, 2, 3]
    assert counted(store, "metadata_values", "user") == {"ada": 3}
