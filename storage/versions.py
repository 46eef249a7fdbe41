"""Versions of a sheet: one is added with every structural change, in its transaction."""

from collections.abc import Sequence
from datetime import datetime

from storage.domain.columns import Column
from storage.domain.versions import Delta, Structure, VersionSource
from storage.engine.catalog import Connection
from storage.engine.rows.versions import insert_version
from storage.store import Store


def record_version(
    connection: Connection,
    store: Store,
    *,
    sheet_no: int,
    number: int,
    name: str,
    user_id: int,
    snapshot_no: int,
    row_count: int,
    title: str,
    index: int,
    columns: Sequence[Column],
    source: VersionSource,
    deltas: Sequence[Delta],
    now: datetime,
) -> None:
    """Add a version of the sheet as it stands after the change."""
    metadata = {
        "row_count": row_count,
        "column_count": len(columns),
        "source": source,
        "source_version_id": None,
        "delta_count": len(deltas),
    }
    values = {
        "id": store.new_id(),
        "sheet_no": sheet_no,
        "version_number": number,
        "name": name,
        "user_id": user_id,
        "snapshot_no": snapshot_no,
        "metadata": metadata,
        "deltas": [delta.to_json() for delta in deltas],
        "created_at": now,
    }
    insert_version(connection, values, Structure(title, index, tuple(columns)))
