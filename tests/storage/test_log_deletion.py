"""A deleted log is gone from every read at once, and from the files when these are rewritten."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from storage import log_deletion
from storage.domain.errors import NotFound
from storage.domain.keys import Principal
from storage.domain.request_logs import LogFilter, Score
from storage.engine.rows.log_deletions import select_gone
from storage.engine.rows.log_patches import select_patches
from storage.engine.rows.log_segments import LOGS, SCORES, select_segments
from storage.engine.schema import audit_entries
from storage.log_compaction import compact_logs, due_days
from storage.log_deletion import (
    delete_all_logs,
    delete_log,
    delete_logs,
    forget_old_logs,
    keep_logs,
    list_keeping,
)
from storage.log_flush import flush_logs, publish_views
from storage.request_logs import get_request_log, scan_request_logs
from storage.sql import open_ad_hoc
from storage.store import Store
from storage.tracking import track_metadata, track_score
from storage.workspaces import create_workspace
from tests.logs import add_logs, chat


def later(store: Store, **gap: float) -> Store:
    now = store.now
    return replace(store, now=lambda: now() + timedelta(**gap))


def scanned(store: Store, workspace_id: int = 1, **wanted: Any) -> list[int]:
    batches = scan_request_logs(store, workspace_id, LogFilter(**wanted), batch_rows=3)
    return [log_id for batch in batches for log_id in batch.column("id").to_pylist()]


def published(store: Store, query: str) -> list[Any]:
    with duckdb.connect(str(store.data.path("views/default.duckdb")), read_only=True) as connection:
        return [row[0] for row in connection.execute(query).fetchall()]


def asked(store: Store, query: str) -> list[Any]:
    with open_ad_hoc(store, "default") as views:
        return [row[0] for row in views._connection.execute(query).fetchall()]


def seen_everywhere(store: Store, who: Principal, ids: list[int], *, flushed: bool) -> None:
    """Assert that every reader shows just these logs."""
    assert scanned(store, newest_first=False) == ids
    assert scanned(store, ids=tuple(range(1, 20))) == ids
    for log_id in range(1, 12):
        if log_id in ids:
            assert get_request_log(store, who, log_id)["id"] == log_id
        else:
            with pytest.raises(NotFound):
                get_request_log(store, who, log_id)
            with pytest.raises(NotFound):
                track_metadata(store, who, log_id, {"a": "b"})
    readers: list[Callable[[str], list[Any]]] = [lambda query: asked(store, query)]
    if flushed:
        readers.append(lambda query: published(store, query))
    for read in readers:
        assert read("SELECT id FROM request_logs ORDER BY id") == ids
        assert read("SELECT request_id FROM scores ORDER BY 1") == ids
        assert read("SELECT rows FROM request_logs_as_of") == [len(ids)]


@pytest.mark.parametrize("flushed", [False, True])
def test_a_deleted_log_is_gone_from_every_read_at_once(
    store: Store, who: Principal, *, flushed: bool
) -> None:
    publish_views(store)
    add_logs(store, 6, score=Score("tone", 7))
    track_metadata(store, who, 3, {"user": "ada"})
    if flushed:
        flush_logs(store)
    delete_log(store, who, 3)
    seen_everywhere(store, who, [1, 2, 4, 5, 6], flushed=flushed)
    with pytest.raises(NotFound):
        delete_log(store, who, 3)
    assert delete_logs(store, who, [3, 1, 6]) == 2
    seen_everywhere(store, who, [2, 4, 5], flushed=flushed)
    flush_logs(store)
    seen_everywhere(later(store, seconds=6), who, [2, 4, 5], flushed=flushed)
    with store.logs.read() as connection:
        assert select_patches(connection) == []


def test_deleted_logs_leave_the_files_within_hours_and_the_old_files_go(store: Store, who: Principal) -> None:
    add_logs(store, 6, score=Score("tone", 7))
    flush_logs(store)
    old = [store.data.path(key) for key in keys(store)]
    delete_log(store, who, 3)
    assert due_days(later(store, hours=5)) == []
    due = later(store, hours=7)
    assert len(due_days(due)) == 1
    result = compact_logs(due)
    assert result.deleted_rows == 1
    for kind, column in ((LOGS, "id"), (SCORES, "request_id")):
        (path,) = [store.data.path(key) for key in keys(store, kind)]
        assert pq.read_table(path, columns=[column]).column(column).to_pylist() == [1, 2, 4, 5, 6]
    with store.logs.read() as connection:
        assert select_gone(connection, 1).ids == ()
    seen_everywhere(store, who, [1, 2, 4, 5, 6], flushed=True)
    over = later(store, hours=9)
    assert len(due_days(over)) == 1
    compact_logs(over)
    assert not any(path.exists() for path in old)
    assert due_days(over) == []


def keys(store: Store, kind: str | None = None) -> list[str]:
    with store.logs.read() as connection:
        return [segment.key for segment in select_segments(connection, kind=kind)]


def test_a_log_deleted_while_its_file_is_rewritten_stays_deleted(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from storage import log_compaction  # noqa: PLC0415

    add_logs(store, 4, score=Score("tone", 7))
    flush_logs(store)
    delete_log(store, who, 1)
    write = log_compaction.rewrite_logs

    def meanwhile(*args: Any, **options: Any) -> Any:
        made = write(*args, **options)
        delete_log(store, who, 2)
        return made

    monkeypatch.setattr(log_compaction, "rewrite_logs", meanwhile)
    compact_logs(store, rewrite_all=True)
    seen_everywhere(store, who, [3, 4], flushed=True)
    monkeypatch.setattr(log_compaction, "rewrite_logs", write)
    compact_logs(store, rewrite_all=True)
    seen_everywhere(store, who, [3, 4], flushed=True)


def test_all_logs_of_a_workspace_go_and_those_of_others_stay(store: Store, who: Principal) -> None:
    create_workspace(store, "other")
    for _ in range(2):
        add_logs(store, 3, score=Score("tone", 7))
        add_logs(store, 2, workspace_id=2)
        flush_logs(store)
    late = add_logs(store, 2) + add_logs(store, 1, workspace_id=2)
    delete_log(store, who, 1)
    assert delete_all_logs(store, "default") == 7
    assert delete_all_logs(store, "default") == 0
    seen_everywhere(store, who, [], flushed=True)
    assert len(scanned(store, 2)) == 5
    new = add_logs(store, 1, score=Score("tone", 7))
    flush_logs(store)
    publish_views(store, at_once=True)
    seen_everywhere(store, who, new, flushed=True)
    assert new[0] > late[-1]
    (segment,) = [key for key in keys(store, LOGS) if key.startswith("logs/1/")]
    assert pq.read_table(store.data.path(segment), columns=["id"]).column("id").to_pylist() == new
    track_score(store, who, new[0], Score("tone", 8))
    with pytest.raises(NotFound):
        delete_all_logs(store, "unknown")


def test_logs_older_than_their_workspace_keeps_them_are_deleted(store: Store, who: Principal) -> None:
    create_workspace(store, "other")
    for days in (-10, -5, -1):
        for workspace_id in (1, 2):
            add_logs(later(store, days=days), 2, workspace_id=workspace_id)
        if days != -5:  # the files: one of old logs, one of older and newer logs
            flush_logs(store)
    assert forget_old_logs(store) == {}
    keep_logs(store, "default", 3)
    assert list_keeping(store) == {1: 3}
    assert forget_old_logs(store) == {1: 4}
    assert scanned(store, newest_first=False) == [9, 10]
    assert len(scanned(store, 2)) == 6
    assert forget_old_logs(store) == {}
    assert due_days(store) != []
    compact_logs(store)
    assert scanned(store, newest_first=False) == [9, 10]
    own = [key for key in keys(store, LOGS) if key.startswith("logs/1/")]
    assert sum(pq.read_metadata(store.data.path(key)).num_rows for key in own) == 2
    keep_logs(store, "default", None)
    assert list_keeping(store) == {}
    with pytest.raises(ValueError, match="days"):
        keep_logs(store, "default", 0)
    assert forget_old_logs(later(store, days=1000)) == {}


def test_scores_of_logs_that_went_with_all_older_ones_leave_their_files(store: Store) -> None:
    add_logs(store, 3, score=Score("tone", 7))
    flush_logs(store)
    delete_all_logs(store, "default")
    due = later(store, seconds=1)
    assert len(due_days(due)) == 1
    compact_logs(due)
    assert keys(store, SCORES) == []
    assert due_days(due) == []
    new = add_logs(store, 2, score=Score("tone", 8))
    flush_logs(due)
    keep_logs(store, "default", 1)
    (kept,) = add_logs(later(store, days=2), 1, score=Score("tone", 9))
    flush_logs(later(store, days=2))
    tomorrow = later(store, days=2, seconds=1)
    assert forget_old_logs(tomorrow) == {1: len(new)}
    compact_logs(tomorrow)
    (path,) = [store.data.path(key) for key in keys(store, SCORES)]
    assert pq.read_table(path, columns=["request_id"]).column("request_id").to_pylist() == [kept]
    assert due_days(tomorrow) == []


def test_of_two_deletions_of_one_log_at_once_one_is_told_that_it_is_gone(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    (log_id,) = add_logs(store, 1)
    looked = log_deletion.has_log

    def overtaken(*where: Any) -> bool:
        there = looked(*where)
        monkeypatch.setattr(log_deletion, "has_log", looked)
        delete_log(store, who, log_id)
        return there

    monkeypatch.setattr(log_deletion, "has_log", overtaken)
    with pytest.raises(NotFound):
        delete_log(store, who, log_id)
    with store.catalog.read() as connection:
        kinds = connection.execute(sa.select(audit_entries.c.kind)).scalars()
        assert list(kinds).count("request_log") == 1


def test_a_deleted_text_stands_in_no_file_of_the_databases_once_it_left_the_files(
    store: Store, who: Principal
) -> None:
    secret = b"walrus-4711"
    add_logs(store, 3, input=chat("user", secret.decode()))
    for _ in range(2):  # the next flush removes from the tail what the last one wrote
        flush_logs(store)
    delete_logs(store, who, [1, 2, 3])
    compact_logs(store, rewrite_all=True)
    files = [path for path in store.settings.root.glob("*.sqlite3*") if secret in path.read_bytes()]
    assert files == []
