"""How durable Dagster's own record is: consistent always, on the disk a moment later.

The catalog says what is true of an operation and waits for the disk at every commit. Dagster's record of
a run is some fifteen commits; waiting for the disk at each would make up most of a short run. With the
write-ahead log and `synchronous=NORMAL` a power failure may take the last runs out of the record, never
corrupt it, and an operation whose run is gone from the record fails as lost.
"""

import os
import sqlite3
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import ConnectionPoolEntry

_NAMES = frozenset({"runs.db", "event_log.db", "schedules.db"})


def spare_syncs() -> None:
    """Open the SQLite files of the Dagster home, and no others, with `synchronous=NORMAL` from now on."""
    if not sa.event.contains(sa.Engine, "connect", _spare):
        sa.event.listen(sa.Engine, "connect", _spare)


def _spare(connection: Any, _entry: ConnectionPoolEntry) -> None:
    if isinstance(connection, sqlite3.Connection) and _is_of_dagster(connection):
        connection.execute("PRAGMA synchronous=NORMAL")


def _is_of_dagster(connection: sqlite3.Connection) -> bool:
    folder, name = os.path.split(connection.execute("PRAGMA database_list").fetchone()[2])
    home = os.environ.get("DAGSTER_HOME")
    return home is not None and name in _NAMES and os.path.realpath(home) == os.path.realpath(folder)
