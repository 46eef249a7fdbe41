"""Asset checks on real files: a byte that changed is found, in either asset."""

from collections.abc import Callable
from pathlib import Path

import pytest
from dagster import AssetCheckResult

from pipelines import resources
from pipelines.defs.checks import log_indexes_are_whole, log_segments_are_whole, sheet_segments_are_whole
from pipelines.flush import run_flush
from storage.domain.keys import Principal
from storage.engine.rows.log_companions import KINDS
from storage.log_index import index_logs
from storage.store import Store
from storage.tables import create_table
from storage.workspaces import find_key
from tests.conftest import KEY
from tests.importing import imported_sheet
from tests.logs import add_logs


@pytest.fixture
def who(store: Store) -> Principal:
    facts = find_key(store, KEY)
    assert facts is not None
    return facts.principal


@pytest.fixture
def resource(store: Store, monkeypatch: pytest.MonkeyPatch) -> resources.StoreResource:
    monkeypatch.setattr(resources, "process_store", lambda: store)
    return resources.StoreResource()


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-10])


@pytest.mark.parametrize("harm", [flip_a_byte, cut, Path.unlink])
def test_a_harmed_segment_of_logs_fails_its_check(
    store: Store, resource: resources.StoreResource, harm: Callable[[Path], None]
) -> None:
    add_logs(store, 20)
    run_flush(store)
    assert log_segments_are_whole(store=resource).passed
    segments = [path for path in store.data.path("").rglob("*.parquet") if "logs" in str(path)]
    harm(segments[0])
    assert_failed(log_segments_are_whole(store=resource))


@pytest.mark.parametrize("harm", [flip_a_byte, cut, Path.unlink])
@pytest.mark.parametrize("kind", KINDS)
def test_a_harmed_index_of_logs_fails_its_check_and_is_made_anew(
    store: Store, resource: resources.StoreResource, harm: Callable[[Path], None], kind: str
) -> None:
    add_logs(store, 20)
    run_flush(store)
    index_logs(store, from_bytes=0)
    assert log_indexes_are_whole(store=resource).passed
    (index,) = store.data.path("").rglob(f"index/{kind}-*.parquet")
    harm(index)
    harmed = log_indexes_are_whole(store=resource)
    assert (harmed.passed, harmed.metadata["made_anew"].value) == (False, 1)
    assert index_logs(store, from_bytes=0).segments == 1
    assert log_indexes_are_whole(store=resource).passed


@pytest.mark.parametrize("harm", [flip_a_byte, cut, Path.unlink])
def test_a_harmed_segment_of_a_sheet_fails_its_check(
    store: Store, who: Principal, resource: resources.StoreResource, harm: Callable[[Path], None]
) -> None:
    sheet = imported_sheet(store, who, create_table(store, who).id, ["name"], [[f"n{n}"] for n in range(50)])
    assert sheet_segments_are_whole(store=resource).passed
    (segment,) = store.data.path(f"sheets/{sheet.id}").iterdir()
    harm(segment)
    assert_failed(sheet_segments_are_whole(store=resource))


def assert_failed(result: AssetCheckResult) -> None:
    assert not result.passed
    assert result.metadata["faults"].value == 1
