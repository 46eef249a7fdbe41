"""Patches of logs: SQL says what the rule says, nothing that was tracked is lost on the way into files."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import log_flush
from storage.domain.keys import Principal
from storage.domain.log_patches import apply_patch, merge_patches
from storage.engine.log_body import encode_body
from storage.engine.log_patches import Patches
from storage.engine.log_sql import arrow_tail, duck, spread
from storage.engine.rows.log_patches import PatchRow, find_patch
from storage.engine.rows.log_tail import TailRow
from storage.log_flush import flush_logs
from storage.request_logs import get_request_log
from storage.settings import Settings
from storage.store import Store, open_store
from storage.tracking import track_metadata
from tests.logs import add_logs, stored_fields

metadata = st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=3)
links = st.none() | st.tuples(
    st.integers(1, 9), st.text(max_size=3), st.none() | st.integers(1, 9), metadata | st.none()
)


def as_patch(said: tuple[dict[str, str] | None, Any]) -> dict[str, Any]:
    found, link = said
    patch: dict[str, Any] = {} if found is None else {"metadata": found}
    if link is not None:
        names = ("prompt_id", "prompt_name", "prompt_version_number")
        patch |= dict(zip(names, link[:3], strict=True))
        if link[3] is not None:
            patch["prompt_input_variables"] = link[3]
    return patch


patches = st.tuples(st.none() | metadata, links).map(as_patch)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(metadata, st.lists(patches, max_size=3)), min_size=1, max_size=4))
def test_a_patched_read_is_the_rule_applied(logs: list[tuple[dict[str, str], list[dict[str, Any]]]]) -> None:
    tail, rows, wanted = [], [], []
    for log_id, (held, said) in enumerate(logs, 1):
        fields = stored_fields(metadata=held)
        tail.append(TailRow(log_id, 1, 0, encode_body(fields)))
        merged: dict[str, Any] = {}
        for patch in said:
            merged = merge_patches(merged, patch)
            fields = apply_patch(fields, patch)
        assert apply_patch(stored_fields(metadata=held), merged) == fields
        assert apply_patch(fields, merged) == fields
        if said:
            rows.append(PatchRow(1, log_id, merged, 0, 1))
        wanted.append(fields)
    held_patches = Patches.of(rows)
    with duck(threads=1) as connection:
        connection.register("tail", arrow_tail(tail))
        connection.register(held_patches.relation, held_patches.arrow())
        select = held_patches.over(spread("tail"), first_id=1, last_id=len(logs))
        names = "metadata, prompt_id, prompt_name, prompt_version_number, prompt_input_variables::JSON"
        found = connection.execute(f"SELECT {names} FROM ({select}) ORDER BY id").fetchall()
    for row, fields in zip(found, wanted, strict=True):
        assert row[:4] == (
            fields["metadata"],
            fields["prompt_id"],
            fields["prompt_name"],
            fields["prompt_version_number"],
        )
        assert encode_body(fields["prompt_input_variables"]).decode() == row[4]


def test_a_part_without_a_patched_request_is_read_as_it_is() -> None:
    held = Patches.of([PatchRow(1, 7, {}, 0, 1), PatchRow(1, 3, {}, 0, 2)])
    assert [held.over("x", first_id=a, last_id=b) == "x" for a, b in ((1, 2), (4, 6), (8, 9))] == [True] * 3
    assert [held.over("x", first_id=a, last_id=b) == "x" for a, b in ((1, 3), (7, 7), (3, 7))] == [False] * 3


def test_what_is_said_while_the_file_is_written_stays(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, late = add_logs(store, 2)
    track_metadata(store, who, early, {"a": "1"})
    write = log_flush.write_log_segments

    def meanwhile(*args: Any, **kwargs: Any) -> Any:
        written = write(*args, **kwargs)
        track_metadata(store, who, early, {"b": "2"})
        track_metadata(store, who, late, {"c": "3"})
        return written

    monkeypatch.setattr(log_flush, "write_log_segments", meanwhile)
    flush_logs(store)
    assert get_request_log(store, who, early)["metadata"] == {"a": "1", "b": "2"}
    assert get_request_log(store, who, late)["metadata"] == {"c": "3"}
    with store.logs.read() as connection:
        assert find_patch(connection, 1, early) is not None


def test_a_home_of_the_first_release_is_upgraded(settings: Settings, who: Principal, store: Store) -> None:
    (log_id,) = add_logs(store, 1)
    with store.logs.transaction() as connection:
        for statement in (
            "DROP TABLE log_patches",
            "DROP TABLE log_groups",
            "ALTER TABLE log_state DROP COLUMN patch_change",
            "ALTER TABLE log_views DROP COLUMN patches_through",
            "UPDATE alembic_version SET version_num = '0001_first_release'",
        ):
            connection.exec_driver_sql(statement)
    upgraded = open_store(settings)
    try:
        track_metadata(upgraded, who, log_id, {"a": "1"})
        assert get_request_log(upgraded, who, log_id)["metadata"] == {"a": "1"}
        flush_logs(upgraded)
        assert get_request_log(upgraded, who, log_id)["metadata"] == {"a": "1"}
    finally:
        upgraded.close()
