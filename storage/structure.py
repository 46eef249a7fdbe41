"""A structural change of a sheet: counted, and kept as a version, in the change's own transaction."""

from collections.abc import Sequence
from datetime import datetime

from storage.domain.keys import Principal
from storage.domain.sheets import Sheet
from storage.domain.versions import Delta
from storage.engine.catalog import Connection
from storage.engine.rows.columns import select_columns
from storage.engine.rows.sheets import update_sheet
from storage.engine.rows.tables import touch_table
from storage.engine.snapshots import Snapshot
from storage.store import Store
from storage.versions import record_version


def record_structure(
    connection: Connection,
    store: Store,
    who: Principal,
    sheet: Sheet,
    *,
    snapshot: Snapshot,
    name: str,
    deltas: Sequence[Delta],
    now: datetime,
) -> int:
    """Add the version that a change of columns makes; return its number."""
    number = sheet.version_count + 1
    update_sheet(connection, sheet.no, {"version_count": number, "updated_at": now})
    record_version(
        connection,
        store,
        sheet_no=sheet.no,
        number=number,
        name=name[:255],
        user_id=who.user_id,
        snapshot_no=snapshot.no,
        row_count=snapshot.manifest.row_count,
        title=sheet.title,
        index=sheet.index,
        columns=select_columns(connection, sheet.no),
        source="automatic",
        deltas=deltas,
        now=now,
    )
    touch_table(connection, sheet.table_no, now)
    return number
