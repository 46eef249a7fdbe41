"""Views of the sheets of a table: in a file of its own, or in an open DuckDB."""

import logging
from collections.abc import Sequence
from typing import Protocol

import duckdb
import pyarrow.parquet as pq

from storage.domain.columns import Column
from storage.domain.view_names import OVERLAY
from storage.engine.data_root import DataRoot
from storage.engine.log_sql import duck, quoted
from storage.engine.sheet_views import create_sheet_view, name_quoted, overlay_table, sheet_query
from storage.engine.snapshots import Snapshot

Duck = duckdb.DuckDBPyConnection
"""What a verb holds while a DuckDB is open; only engine code looks inside."""

# the oldest storage format that DuckDB 1.x reads
_STORAGE_VERSION = "v1.0.0"


class Shown(Protocol):
    """A view: its name and what it shows."""

    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> Sequence[Column]: ...
    @property
    def snapshot(self) -> Snapshot: ...


log = logging.getLogger("promptlake.views")


def publish_table_views(data: DataRoot, key: str, schema: str, shown: Sequence[Shown]) -> set[str] | None:
    """Write the view file of a table anew, and beside it what overlays hold; return the keys of these.

    Its paths are absolute, as ad hoc users open it from anywhere. None when DuckDB refuses it: then the file
    stays as it was, and those of other tables do not wait for it.

    Raises:
        Unavailable: the disk is full.
    """
    try:
        return _publish(data, key, schema, shown)
    except duckdb.Error as error:  # its message quotes titles and values
        log.error("the views %s cannot be written: %s", key, type(error).__name__)  # noqa: TRY400
        return None


def _publish(data: DataRoot, key: str, schema: str, shown: Sequence[Shown]) -> set[str]:
    named: set[str] = set()
    with data.writing(key) as path, duck(threads=1) as connection:
        connection.execute(f"ATTACH {quoted(str(path))} AS published (STORAGE_VERSION '{_STORAGE_VERSION}')")
        for one in shown:
            held = overlay_table(one.snapshot, one.columns)
            relation = None
            if held is not None:
                beside = f"{key.removesuffix('.duckdb')}{OVERLAY}{one.snapshot.no}.parquet"
                named.add(beside)
                if not data.path(beside).exists():
                    with data.writing(beside) as file:
                        pq.write_table(held, file, compression="zstd")
                relation = f"read_parquet({quoted(str(data.path(beside)))})"
            names = () if held is None else held.column_names
            query = sheet_query(data, one.snapshot, one.columns, relation, names)
            create_sheet_view(connection, f"published.{name_quoted(schema)}", one.name, query)
        connection.execute("DETACH published")
    return named


def add_views(data: DataRoot, connection: Duck, schema: str, shown: Sequence[Shown]) -> None:
    """Add views to an open DuckDB, with the overlays in memory."""
    for one in shown:
        held = overlay_table(one.snapshot, one.columns)
        relation = None
        if held is not None:
            relation = f"sheet_overlay_{one.snapshot.no}"
            connection.register(relation, held)
        names = () if held is None else held.column_names
        query = sheet_query(data, one.snapshot, one.columns, relation, names)
        create_sheet_view(connection, name_quoted(schema), one.name, query)
