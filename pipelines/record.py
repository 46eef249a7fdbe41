"""Dagster's record of runs in SQLite, as dagster.yaml names it: one engine a file, and no wait for the disk.

Dagster's own storages make an engine for every statement: each compiles its SQL anew and asks the database
who it is, which made up a third of a short run. Connections are not kept: they must not cross a fork, and
the worker host forks. A file that is there is whole (the instance is made in a folder of its own, alone), so
opening one does not look at its revision, as Dagster does for some 20 ms at every opening.

The catalog says what is true of an operation and waits for the disk at every commit. Dagster's record of
a run is some fifteen commits; waiting for the disk at each would make up most of a short run. With the
write-ahead log and `synchronous=NORMAL` a power failure may take the last runs out of the record, never
corrupt it, and an operation whose run is gone from the record fails as lost.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Self, cast

import sqlalchemy as sa
from dagster._core.storage.event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.runs import SqliteRunStorage
from dagster._core.storage.schedules import SqliteScheduleStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS, create_db_conn_string
from dagster._serdes.config_class import ConfigurableClassData
from sqlalchemy.pool import ConnectionPoolEntry, NullPool


class RunRecord(SqliteRunStorage):
    """Which runs there are, and how they stand."""

    @cached_property
    def _engine(self) -> sa.Engine:
        return _engine_of(self._conn_string)

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> Self:
        base = config_value["base_dir"]
        if Path(base, "runs.db").exists():
            return cls(create_db_conn_string(base, "runs"), inst_data)
        return cls.from_local(inst_data=inst_data, **config_value)

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        with self._engine.begin() as connection:
            yield connection


class EventRecord(ConsolidatedSqliteEventLogStorage):
    """The events of all runs in one file: a file per run costs about 90 ms a run in schema creation."""

    @cached_property
    def _engine(self) -> sa.Engine:
        return _engine_of(self._conn_string)

    @contextmanager
    def _connect(self) -> Iterator[sa.Connection]:
        with self._engine.begin() as connection:
            yield connection


class ScheduleRecord(SqliteScheduleStorage):
    """The ticks of sensors and schedules."""

    @cached_property
    def _engine(self) -> sa.Engine:
        return _engine_of(self._conn_string)

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> Self:
        base = config_value["base_dir"]
        if Path(base, "schedules.db").exists():
            return cls(create_db_conn_string(base, "schedules"), inst_data)
        made = cls.from_local(inst_data=inst_data, **config_value)
        return cast("Self", made)

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        with self._engine.begin() as connection:
            yield connection


def _engine_of(url: str) -> sa.Engine:
    engine = sa.create_engine(url, poolclass=NullPool, connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS})
    sa.event.listen(engine, "connect", _spare_syncs)
    return engine


def _spare_syncs(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")
