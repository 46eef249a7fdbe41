"""Files of logs that are missing or damaged: readers and the doctor say so, and its cure works."""

from collections.abc import Callable
from pathlib import Path

import pytest

from storage.domain.errors import Unavailable
from storage.domain.filters import parse_filter_group
from storage.domain.keys import Principal
from storage.domain.request_logs import LogFilter
from storage.engine.log_rewrite import LogsDamaged
from storage.engine.rows.log_companions import VALUES, select_companions
from storage.engine.rows.log_segments import select_segments
from storage.health import check_storage
from storage.log_compaction import compact_logs
from storage.log_deletion import delete_log
from storage.log_flush import flush_logs
from storage.log_index import forget_broken_index, index_logs
from storage.log_salvage import rebuild_manifest
from storage.request_logs import get_request_log, scan_request_logs
from storage.request_search import SearchQuery, search_requests
from storage.settings import Settings
from storage.sql import QueryError, open_ad_hoc
from storage.store import Store, opened
from tests.logs import add_logs


def _gone(path: Path) -> None:
    path.unlink()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _pages(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    path.write_bytes(content)


@pytest.fixture
def files(store: Store) -> list[Path]:
    for _ in range(2):
        add_logs(store, 2)
        flush_logs(store)
    with store.logs.read() as connection:
        return [store.data.path(one.key) for one in select_segments(connection)]


def told(settings: Settings, part: str = "logs") -> list[tuple[str, str]]:
    found = [one for one in check_storage(settings) if one.part == part]
    return [(one.state, one.sentence) for one in found]


@pytest.mark.parametrize("harm", [_gone, _cut, _pages])
def test_readers_say_that_a_file_is_damaged(
    store: Store, who: Principal, files: list[Path], harm: Callable[[Path], None]
) -> None:
    harm(files[0])
    with pytest.raises(Unavailable, match="doctor"):
        search_requests(store, who, SearchQuery(words=("legs",)), page=1, per_page=10)
    with pytest.raises(Unavailable, match="doctor"):
        get_request_log(store, who, 1)
    with pytest.raises(Unavailable, match="doctor"):
        list(scan_request_logs(store, who.workspace_id, LogFilter()))
    with pytest.raises(QueryError), open_ad_hoc(store, "default") as views:
        views.show("SELECT sum(length(input)) FROM request_logs", max_rows=1, max_width=80)
    assert get_request_log(store, who, 3)["id"] == 3


def test_a_damaged_file_is_not_rewritten_as_one_that_looks_whole(
    store: Store, who: Principal, files: list[Path]
) -> None:
    content = bytearray(files[0].read_bytes())
    # in what the footer says beside the columns: all of it can still be read
    place = content.rindex(b"promptlake")
    content[place] ^= 1
    files[0].write_bytes(content)
    delete_log(store, who, 1)
    with pytest.raises(LogsDamaged, match=files[0].name):
        compact_logs(store, rewrite_all=True)
    with store.logs.read() as connection:
        assert [store.data.path(one.key) for one in select_segments(connection)] == files


def test_the_doctor_names_a_damaged_file_and_its_cure_works(
    store: Store, who: Principal, settings: Settings, files: list[Path]
) -> None:
    assert told(settings) == [("ok", "2 files of logs are there")]
    whole = files[0].read_bytes()
    _cut(files[0])
    ((state, sentence),) = told(settings)
    assert (state, files[0].name in sentence) == ("failed", True)
    files[0].write_bytes(whole)
    assert told(settings) == [("ok", "2 files of logs are there")]
    files[0].unlink()
    assert told(settings)[0][0] == "failed"
    rebuild_manifest(store)
    assert told(settings) == [("ok", "1 files of logs are there")]
    assert search_requests(store, who, SearchQuery(), page=1, per_page=10).total == 2


def test_the_doctor_names_lost_indexes(store: Store, settings: Settings, files: list[Path]) -> None:
    index_logs(store, from_bytes=0)
    (next((files[0].parent / "index").glob("words-*"))).unlink()
    assert [state for state, _ in told(settings)] == ["ok", "warning"]
    index_logs(store, from_bytes=0)
    assert [state for state, _ in told(settings)] == ["ok"]


def test_whatever_byte_of_a_dictionary_has_changed_no_search_is_a_failure_of_ours(
    store: Store, who: Principal
) -> None:
    add_logs(store, 20, metadata={"user": "ada"}, tags=["a", "b"])
    flush_logs(store)
    index_logs(store, from_bytes=0)
    group = parse_filter_group({"filters": [{"value": "ada", "nested_key": "user"}]})

    def total(of: Store) -> int:
        return search_requests(of, who, SearchQuery(group=group), page=1, per_page=5).total

    def dictionary(of: Store) -> Path:
        with of.logs.read() as connection:
            return next(of.data.path(one.key) for one in select_companions(connection) if one.kind == VALUES)

    refused = 0
    for at in range(4, dictionary(store).stat().st_size - 8, 61):
        content = bytearray(dictionary(store).read_bytes())
        content[at] ^= 0x80
        dictionary(store).write_bytes(content)
        with opened(store.settings) as harmed:
            try:
                total(harmed)
            except Unavailable:
                refused += 1
            forget_broken_index(harmed)
            index_logs(harmed, from_bytes=0)
            assert total(harmed) == 20
    assert refused > 0
