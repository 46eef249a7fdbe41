"""Dagster's record of runs in SQLite, as dagster.yaml names it: one engine a file, and no wait for the disk.

Dagster's own storages make an engine for every statement: each compiles its SQL anew and asks the database
who it is, which made up a third of a short run. Processes that never fork also keep their connections: a new
one reads the schema of its file anew, half of what a statement costs. A file that is there is whole (the
instance is made in a folder of its own, alone), so opening one does not look at its revision, as Dagster does
for some 20 ms at every opening.

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

_KEPT_CONNECTIONS = 2
_CACHE_KB = 512

_keeps_connections = False


def keep_connections() -> None:
    """Let this process keep its connections to files of the record that it opens from now on.

    It must never fork: SQLite's connections do not survive that, in the child or beside it.
    """
    global _keeps_connections  # noqa: PLW0603  # Dagster makes the storages, and tells them nothing of their process
    _keeps_connections = True


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

    def has_run_stats_index_cols(self) -> bool:
        # asked for with every run that is read; a column that is there stays
        return self._has_stats or super().has_run_stats_index_cols()

    def has_backfill_id_column(self) -> bool:
        return self._has_backfill or super().has_backfill_id_column()

    @cached_property
    def _has_stats(self) -> bool:
        return super().has_run_stats_index_cols()

    @cached_property
    def _has_backfill(self) -> bool:
        return super().has_backfill_id_column()

    def dispose(self) -> None:
        self._engine.dispose()
        super().dispose()


class EventRecord(ConsolidatedSqliteEventLogStorage):
    """The events of all runs in one file: a file per run costs about 90 ms a run in schema creation."""

    @cached_property
    def _engine(self) -> sa.Engine:
        return _engine_of(self._conn_string)

    @contextmanager
    def _connect(self) -> Iterator[sa.Connection]:
        with self._engine.begin() as connection:
            yield connection

    def has_table(self, table_name: str) -> bool:
        if table_name not in self._tables:
            with self._connect() as connection:
                self._tables |= set(sa.inspect(connection).get_table_names())
        return table_name in self._tables

    def _has_asset_key_col_on_connection(self, conn: sa.Connection, column_name: str) -> bool:
        if column_name not in self._asset_columns:
            found = sa.inspect(conn).get_columns("asset_keys")
            self._asset_columns |= {column["name"] for column in found}
        return column_name in self._asset_columns

    @cached_property
    def _asset_columns(self) -> set[str]:
        return set()

    @cached_property
    def _tables(self) -> set[str]:
        # a table that was seen stays: nothing of Dagster's drops one
        return set()

    def dispose(self) -> None:
        self._engine.dispose()
        super().dispose()  # type: ignore[no-untyped-call]  # dagster's own


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

    def dispose(self) -> None:
        self._engine.dispose()
        super().dispose()


def _engine_of(url: str) -> sa.Engine:
    timeout = {"timeout": SQLITE_BUSY_TIMEOUT_SECONDS}
    if _keeps_connections:
        engine = sa.create_engine(url, pool_size=_KEPT_CONNECTIONS, max_overflow=-1, connect_args=timeout)
    else:
        engine = sa.create_engine(url, poolclass=NullPool, connect_args=timeout)
    sa.event.listen(engine, "connect", _spare_syncs)
    return engine


def _spare_syncs(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute(f"PRAGMA cache_size=-{_CACHE_KB}")
