"""Rows of snapshots as the upkeep sees them: what there is to fold, and what nothing names."""

import sqlalchemy as sa

from storage.engine.catalog import Connection
from storage.engine.schema import sheets, snapshots


def select_due_sheets(
    connection: Connection, *, cells: int, size: int, pieces: int, limit: int
) -> list[tuple[int, str]]:
    """Return number and id of live sheets whose head has more to fold or to join than this."""
    head = snapshots.c
    due = (head.overlay_cells > cells) | (head.overlay_bytes > size) | (head.part_count > pieces)
    query = (
        sa.select(sheets.c.no, sheets.c.id)
        .join(snapshots, head.no == sheets.c.head_no)
        .where(sheets.c.deleted_at.is_(None) & due)
        .order_by(sheets.c.no)
        .limit(limit)
    )
    return [(no, str(sheet_id)) for no, sheet_id in connection.execute(query)]
