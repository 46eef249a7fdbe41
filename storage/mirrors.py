"""Columns that read other sheets: what turns stale when these go, come back, or their rows move."""

from collections.abc import Callable, Collection
from datetime import datetime

from storage.domain.cells import STALE, CellState
from storage.domain.overlay import Patch
from storage.domain.results import MISSING_SOURCE
from storage.domain.staleness import Changed
from storage.engine.catalog import Connection
from storage.engine.rows.column_edges import (
    Gone,
    Place,
    select_changed_since,
    select_direct_readers,
    select_direct_sources,
    select_gone,
    select_read_elsewhere,
    select_readers,
    select_reading_elsewhere,
)
from storage.engine.snapshots import Snapshot
from storage.staleness import mark_all, mark_dependents
from storage.store import Store


def columns_read_elsewhere(connection: Connection, sheet_nos: Collection[int]) -> list[int]:
    """Return the columns of sheets that any other sheets read."""
    return select_read_elsewhere(connection, sheet_nos)


def mark_gone(
    connection: Connection, store: Store, sheet_nos: Collection[int], read: Collection[int], now: datetime
) -> int:
    """Mark what other sheets read of sheets that are deleted now, or of columns that they lost or got back.

    `read` are the columns that were read elsewhere before, or are now. What reads one that is gone says so.
    Returns how many cells turned stale.
    """
    states = stale_states(connection, select_direct_readers(connection, read))
    return mark_all(connection, store, read, now, chosen=_not_in(sheet_nos), states=states)


def mark_back(connection: Connection, store: Store, sheet_nos: Collection[int], now: datetime) -> int:
    """Mark what reads sheets that are back, and what they read of others, which may have changed meanwhile.

    What they read of themselves is as it was. Returns how many cells turned stale.
    """
    read = select_read_elsewhere(connection, sheet_nos)
    reading = select_reading_elsewhere(connection, sheet_nos)
    changed, chosen = _reached(connection, sheet_nos, read, reading)
    states = stale_states(connection, {*reading, *select_direct_readers(connection, read)})
    return mark_all(connection, store, changed, now, chosen=chosen, states=states)


def mark_restored(
    connection: Connection,
    store: Store,
    head: Snapshot,
    read: Collection[int],
    now: datetime,
    *,
    next_row_no: int,
    since: int,
) -> Patch:
    """Mark what reads a sheet that holds an earlier state again; return the patch for the sheet itself.

    `head` is that state, committed anew, and `since` the number it had. What it reads of other sheets is as
    it was unless these were written since: then its columns keep their values, and say that they are stale.
    `read` are the columns that were read elsewhere before, or are now. Other sheets are marked at once.
    """
    own = [head.sheet_no]
    sources = select_direct_sources(connection, select_reading_elsewhere(connection, own))
    written = select_changed_since(
        connection, {one for some in sources.values() for one in some}, since, but=head.sheet_no
    )
    reading = [no for no, some in sources.items() if not written.isdisjoint(some)]
    changed, chosen = _reached(connection, own, read, reading)
    states = stale_states(connection, {*reading, *select_direct_readers(connection, read)})
    all_rows: Changed = dict.fromkeys(changed)
    return mark_dependents(
        connection, store, head, all_rows, now, next_row_no=next_row_no, chosen=chosen, states=states
    ).patch


def mark_moved(
    connection: Connection, store: Store, head: Snapshot, now: datetime, *, next_row_no: int, shifted: bool
) -> Patch:
    """Mark what reads a sheet whose rows came or went; return the patch for the sheet itself.

    Columns of the sheet read their own row, but what they read of other sheets stands at the index that
    the row has now: where rows `shifted` it is another. Other sheets are marked at once.
    """
    own = [head.sheet_no]
    read = select_read_elsewhere(connection, own)
    reading = select_reading_elsewhere(connection, own)
    if not shifted:
        # only what reads through other sheets what came
        reading = [no for no in reading if no in select_readers(connection, read)] if read else []
    changed, chosen = _reached(connection, own, read, reading)
    all_rows: Changed = dict.fromkeys(changed)
    return mark_dependents(
        connection, store, head, all_rows, now, next_row_no=next_row_no, chosen=chosen
    ).patch


def _reached(
    connection: Connection, sheet_nos: Collection[int], read: Collection[int], reading: Collection[int]
) -> tuple[Collection[int], Callable[[Place], bool]]:
    """Return the columns to begin at, and whom to mark: what other sheets `read`, and what is `reading` them.

    Both with all that reads them in turn.
    """
    outdated = {*reading, *select_readers(connection, reading)} if reading else set()
    below = select_readers(connection, read).keys() if read else set()
    elsewhere = _not_in(sheet_nos)
    sources = {one for some in select_direct_sources(connection, reading).values() for one in some}

    def chosen(reader: Place) -> bool:
        return reader.no in outdated or (reader.no in below and elsewhere(reader))

    return {*sources, *read}, chosen


def stale_states(connection: Connection, column_nos: Collection[int]) -> dict[int, CellState]:
    """Return what the stale cells of columns say: which column is gone that they read, if one is."""
    reads = select_direct_sources(connection, column_nos)
    gone = select_gone(connection, {one for some in reads.values() for one in some})
    found = dict.fromkeys(column_nos, STALE)
    for no, sources in reads.items():
        missing = next((gone[one] for one in sources if one in gone), None)
        if missing is not None:
            message = missing_message(missing)
            found[no] = CellState("stale", error=MISSING_SOURCE, error_message=message)
    return found


def missing_message(gone: Gone) -> str:
    """Say that a column is read that is gone."""
    if gone.table is not None:
        return f"Table {gone.table} was deleted, of which this column reads {gone.title}"
    if gone.sheet is not None:
        return f"Sheet {gone.sheet} was deleted, of which this column reads {gone.title}"
    return f"Column {gone.title} was deleted, which this column reads"


def _not_in(sheet_nos: Collection[int]) -> Callable[[Place], bool]:
    return lambda reader: reader.sheet_no not in sheet_nos
