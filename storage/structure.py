"""A structural change of a sheet: counted, and kept as a version, in the change's own transaction."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from storage.domain.keys import Principal
from storage.domain.sheets import Sheet
from storage.domain.versions import Delta
from storage.engine.catalog import Connection
from storage.engine.rows.tables import touch_table
from storage.engine.snapshots import Snapshot
from storage.store import Store
from storage.versions import add_version


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
    changed = replace(sheet, head_no=snapshot.no, row_count=snapshot.manifest.row_count)
    add_version(connection, store, who, changed, name=name, source="automatic", deltas=deltas, now=now)
    touch_table(connection, sheet.table_no, now)
    return sheet.version_count + 1
