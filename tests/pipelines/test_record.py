"""Dagster's record: one engine a file, consistent always, on the disk a moment later."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import sqlalchemy as sa
from dagster import DagsterInstance

from pipelines.instance import make_instance
from pipelines.record import EventRecord, RunRecord, ScheduleRecord
from storage.settings import Settings
from storage.store import Store

FULL, NORMAL = 2, 1

Connect = Callable[[], AbstractContextManager[sa.Connection]]


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DagsterInstance]:
    settings = Settings(home=tmp_path_factory.mktemp("record"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", "")
        make_instance(settings)
        patch.setenv("DAGSTER_HOME", str(settings.dagster_home))
        with DagsterInstance.from_config(str(settings.dagster_home)) as opened:
            yield opened


@pytest.fixture
def connects(instance: DagsterInstance) -> list[Connect]:
    runs, events, schedules = instance.run_storage, instance.event_log_storage, instance.schedule_storage
    assert isinstance(runs, RunRecord)
    assert isinstance(events, EventRecord)
    assert isinstance(schedules, ScheduleRecord)
    return [runs.connect, events.index_connection, schedules.connect]


def test_the_record_does_not_wait_for_the_disk(connects: list[Connect]) -> None:
    for connect in connects:
        with connect() as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == NORMAL
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"


def test_the_catalog_waits_for_the_disk(store: Store) -> None:
    with store.catalog.transaction() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == FULL


def test_statements_share_an_engine_and_no_connection(connects: list[Connect]) -> None:
    for connect in connects:
        with connect() as first:
            pass
        with connect() as second:
            assert second.engine is first.engine
            assert isinstance(second.engine.pool, sa.NullPool)


def test_runs_are_kept_for_the_next_process(instance: DagsterInstance) -> None:
    instance.add_dynamic_partitions("sheets", ["one"])
    assert Path(instance.root_directory).joinpath("runs.db").exists()
    with DagsterInstance.from_config(instance.root_directory) as other:
        assert other.has_dynamic_partition("sheets", "one")
