"""What was said of logs after they were logged becomes part of the files when these are rewritten."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest

from storage import log_compaction
from storage.domain.keys import Principal
from storage.engine.rows.log_patches import select_patches
from storage.engine.rows.log_segments import LOGS, select_segments
from storage.log_compaction import compact_logs, due_days
from storage.log_flush import flush_logs
from storage.request_logs import get_request_log
from storage.store import Store
from storage.tracking import track_metadata
from tests.logs import add_logs


def test_patches_wait_some_hours_and_then_stand_in_the_file(store: Store, who: Principal) -> None:
    ids = add_logs(store, 4, metadata={"user": "ada"})
    flush_logs(store)
    track_metadata(store, who, ids[1], {"user": "bob", "plan": "free"})
    assert due_days(store) == []
    now = store.now
    later = replace(store, now=lambda: now() + timedelta(hours=7))
    assert len(due_days(later)) == 1
    compact_logs(later)
    with store.logs.read() as connection:
        assert select_patches(connection) == []
        (segment,) = select_segments(connection, kind=LOGS)
    kept = pq.read_table(store.data.path(segment.key), columns=["id", "metadata"]).to_pylist()
    assert [row["id"] for row in kept] == ids
    assert dict(kept[1]["metadata"]) == {"user": "bob", "plan": "free"}
    assert dict(kept[2]["metadata"]) == {"user": "ada"}
    assert get_request_log(store, who, ids[1])["metadata"] == {"user": "bob", "plan": "free"}
    assert due_days(later) == []


def test_what_is_said_while_a_file_is_rewritten_is_not_lost(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    (log_id,) = add_logs(store, 1)
    flush_logs(store)
    track_metadata(store, who, log_id, {"a": "1"})
    write = log_compaction.rewrite_logs

    def meanwhile(*args: Any, **options: Any) -> Any:
        made = write(*args, **options)
        track_metadata(store, who, log_id, {"b": "2"})
        return made

    monkeypatch.setattr(log_compaction, "rewrite_logs", meanwhile)
    compact_logs(store, rewrite_all=True)
    assert get_request_log(store, who, log_id)["metadata"] == {"a": "1", "b": "2"}
