"""What a dictionary tells of a filter is asked once, as neither ever changes."""

from collections.abc import Sequence

import duckdb
import pytest

from storage.domain.filters import parse_filter_group
from storage.domain.keys import Principal
from storage.engine import log_hints
from storage.engine.log_hints import Hint, Told
from storage.log_flush import flush_logs
from storage.log_index import index_logs
from storage.request_search import SearchQuery, search_requests
from storage.store import Store
from tests.logs import add_logs


def test_a_dictionary_is_asked_once_for_a_filter(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    ask = log_hints._told

    def counting(
        connection: duckdb.DuckDBPyConnection, hint: Hint, dictionaries: Sequence[str]
    ) -> dict[str, Told]:
        asked.append(len(dictionaries))
        return ask(connection, hint, dictionaries)

    monkeypatch.setattr(log_hints, "_told", counting)

    def total(user: str, **more: str) -> int:
        filters = [{"field": "metadata", "operator": "key_equals", "nested_key": "user", "value": user}]
        filters += [{"field": field, "operator": "is", "value": value} for field, value in more.items()]
        query = SearchQuery(parse_filter_group({"logic": "AND", "filters": filters}))
        return search_requests(store, who, query, page=1, per_page=5).total

    for at in range(1, 4):
        add_logs(store, at, metadata={"user": "eve"}, model="o3")
        add_logs(store, 1, metadata={"user": "bob"}, model="o3")
        flush_logs(store)
        index_logs(store, from_bytes=0)
        for _ in range(2):
            assert total("eve", engine="o3") == at * (at + 1) // 2
            assert total("eve", engine="o4") == 0
            assert total("bob", engine="o3") == at
    # each time the two users and the two models, of the file that is new
    assert asked == [1] * 4 * 3
