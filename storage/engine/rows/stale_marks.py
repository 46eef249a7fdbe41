"""Rows of marks: which cells turned stale while a recalculation of their sheet had not ended."""

from collections.abc import Mapping

import sqlalchemy as sa

from storage.domain.operations import ENDED, RECALCULATE
from storage.domain.staleness import Rows
from storage.engine.catalog import Connection
from storage.engine.recalculation_schema import stale_marks
from storage.engine.schema import operations


def insert_marks(connection: Connection, marked: Mapping[int, tuple[int, Rows]]) -> None:
    """Note (sheet number, rows) by column, where a recalculation of the sheet is open."""
    sheet_nos = sorted({sheet_no for sheet_no, _ in marked.values()})
    if not sheet_nos:
        return
    where = (
        operations.c.sheet_no.in_(sheet_nos)
        & (operations.c.kind == RECALCULATE)
        & operations.c.status.not_in(sorted(ENDED))
    )
    computed = set(connection.execute(sa.select(operations.c.sheet_no).where(where)).scalars())
    values = [
        {"sheet_no": sheet_no, "column_no": no, "rows": None if rows is None else sorted(rows)}
        for no, (sheet_no, rows) in marked.items()
        if sheet_no in computed
    ]
    if values:
        connection.execute(stale_marks.insert(), values)


def last_mark(connection: Connection) -> int:
    """Return the number of the newest mark of all; 0 when there is none."""
    return connection.execute(sa.select(sa.func.max(stale_marks.c.no))).scalar() or 0


def select_marked_rows(connection: Connection, column_no: int, after: int) -> Rows:
    """Return the rows of a column that were marked after a number; None: all."""
    where = (stale_marks.c.column_no == column_no) & (stale_marks.c.no > after)
    found: set[int] = set()
    for rows in connection.execute(sa.select(stale_marks.c.rows).where(where)).scalars():
        if rows is None:
            return None
        found.update(rows)
    return frozenset(found)


def delete_marks(connection: Connection, sheet_no: int) -> None:
    connection.execute(stale_marks.delete().where(stale_marks.c.sheet_no == sheet_no))
