"""Dagster's record: one engine a file, consistent always, on the disk a moment later."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa
from dagster import DagsterInstance

from pipelines.instance import record
from pipelines.instance.make import make_instance
from pipelines.instance.record import EventRecord, RunRecord, ScheduleRecord
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
    return connects_of(instance)


def connects_of(instance: DagsterInstance) -> list[Connect]:
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


def test_a_process_that_never_forks_keeps_its_connections(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "_keeps_connections", False)
    record.keep_connections()
    with DagsterInstance.from_config(instance.root_directory) as other:
        connect = connects_of(other)[0]
        handles = []
        for _ in range(2):
            with connect() as connection:
                handles.append(connection.connection.dbapi_connection)
                assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == NORMAL
        assert handles[0] is handles[1]
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        handles[0].execute("SELECT 1")


def test_more_threads_than_kept_connections_wait_for_nothing(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "_keeps_connections", True)
    with DagsterInstance.from_config(instance.root_directory) as other, ExitStack() as held:
        for _ in range(40):
            held.enter_context(connects_of(other)[0]())
        assert other.get_runs() == []


def test_tables_are_found_without_asking_twice(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = instance.event_log_storage
    assert events.has_table("dynamic_partitions")
    monkeypatch.setattr(EventRecord, "_connect", None)
    assert events.has_table("dynamic_partitions")
    monkeypatch.undo()
    assert not events.has_table("nothing")


def test_columns_are_found_without_asking_twice(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = instance.run_storage
    assert isinstance(runs, RunRecord)
    assert runs.has_run_stats_index_cols()
    assert runs.has_backfill_id_column()
    monkeypatch.setattr(RunRecord, "connect", None)
    assert runs.has_run_stats_index_cols()
    assert runs.has_backfill_id_column()


def test_runs_are_kept_for_the_next_process(instance: DagsterInstance) -> None:
    instance.add_dynamic_partitions("sheets", ["one"])
    assert Path(instance.root_directory).joinpath("runs.db").exists()
    with DagsterInstance.from_config(instance.root_directory) as other:
        assert other.has_dynamic_partition("sheets", "one")
