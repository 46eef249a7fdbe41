"""Rows added to a sheet and deleted from it; neither makes a version."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

from storage.audit import record_audit
from storage.domain.columns import Column
from storage.domain.encodings import encoding_of
from storage.domain.errors import Invalid, Problem
from storage.domain.imports import ImportedSegment
from storage.domain.keys import Principal
from storage.domain.manifests import Manifest, Part, SegmentRef, Source, Stored
from storage.domain.new_rows import LARGE_CELLS, RowsAdded, blank_layout, check_values, count_rows
from storage.domain.overlay import Entry, Patch, merged
from storage.domain.sheets import EMPTY
from storage.engine.rows.columns import select_columns
from storage.engine.rows.segments import insert_segments
from storage.engine.rows.tables import touch_table
from storage.engine.segments import segment_key, write_segment
from storage.engine.snapshots import commit
from storage.mirrors import mark_moved
from storage.sheets import get_sheet, require_sheet
from storage.store import Store

Values = Mapping[int, Mapping[int, Any]]
"""Values by column number and place among the new rows."""


def add_rows(
    store: Store,
    who: Principal,
    *,
    table_id: UUID,
    sheet_id: UUID,
    count: int | None = None,
    values: Sequence[Mapping[UUID, Any]] | None = None,
) -> RowsAdded:
    """Add rows at the end of a sheet: `count` of them (1 when nothing is said), the first with `values`.

    Raises:
        NotFound: no such sheet.
        Invalid: more than 1,000 rows, an unknown column, a value of more than 8 MB.
        WrongColumnType: a value is of a computed column.
        Unavailable: the disk is full.
    """
    rows = count_rows(count, values)
    sheet = get_sheet(store, who, table_id=table_id, sheet_id=sheet_id)
    with store.catalog.read() as connection:
        held = check_values(select_columns(connection, sheet.no), values or ())
    now = store.now()
    with _written(store, sheet_id, held, rows) as segment, store.catalog.transaction() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        columns = select_columns(connection, sheet.no)
        if held:
            # a column may have gone since
            check_values(columns, values or ())
        head = store.snapshots.get(connection, sheet.head_no)
        layout = _layout(head.manifest, columns, held, segment, now)
        if segment:
            insert_segments(connection, sheet.no, [segment], now)
        manifest = head.manifest.appended([Part(sheet.next_row_no, rows, layout, now)])
        moved = mark_moved(connection, store, head, now, next_row_no=sheet.next_row_no, shifted=False)
        patch = merged(moved, Patch() if segment else _patch(held, sheet.next_row_no, now))
        commit(connection, head, manifest, patch=patch or None, next_row_no=sheet.next_row_no + rows, now=now)
        touch_table(connection, sheet.table_no, now)
        details = {"row_count": rows, "first_index": head.manifest.row_count}
        record_audit(
            connection, store, who, action="add_rows", kind="sheet", entity_id=sheet.id, details=details
        )
    return RowsAdded(head.manifest.row_count, rows, manifest.row_count, sheet.version_count)


def delete_rows(
    store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, row_indices: Sequence[int]
) -> int:
    """Delete the rows at these indices; return how many the sheet has left.

    Raises:
        NotFound: no such sheet.
        Invalid: an index is out of range.
    """
    now = store.now()
    with store.catalog.transaction() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        head = store.snapshots.get(connection, sheet.head_no)
        gone = _row_nos(head.manifest, row_indices)
        manifest = head.manifest.without_rows(gone)
        patch = mark_moved(connection, store, head, now, next_row_no=sheet.next_row_no, shifted=True)
        commit(connection, head, manifest, patch=patch or None, next_row_no=sheet.next_row_no, now=now)
        touch_table(connection, sheet.table_no, now)
        details = {"row_count": len(gone)}
        record_audit(
            connection, store, who, action="delete_rows", kind="sheet", entity_id=sheet.id, details=details
        )
    return manifest.row_count


def _row_nos(manifest: Manifest, row_indices: Sequence[int]) -> set[int]:
    found: set[int] = set()
    for at, index in enumerate(row_indices):
        span = next(manifest.spans(index, 1), None) if index >= 0 else None
        if span is None:
            problem = f"must be below {manifest.row_count}, the number of rows"
            raise Invalid(Problem(("body", "row_indices", str(at)), problem, "less_than"))
        found.add(span.first_row_no)
    return found


@contextmanager
def _written(store: Store, sheet_id: UUID, values: Values, rows: int) -> Iterator[ImportedSegment | None]:
    """Write many values as a segment before the transaction; it is gone if the block fails."""
    if sum(map(len, values.values())) <= LARGE_CELLS:
        yield None
        return
    columns = []
    for at, column in enumerate(values.values()):
        held = [column.get(row, EMPTY) for row in range(rows)]
        columns.append((at, encoding_of(held), held))
    segment = write_segment(store.data, segment_key(sheet_id, store.new_id()), 0, columns)
    try:
        yield segment
    except BaseException:
        store.data.remove(segment.key)
        raise


def _layout(
    manifest: Manifest,
    columns: Sequence[Column],
    values: Values,
    segment: ImportedSegment | None,
    now: datetime,
) -> Mapping[int, Source]:
    layout = blank_layout(columns)
    if segment:
        ref = SegmentRef(segment.key, tuple(one.encoding for one in segment.fields), now)
        return {**layout, **{no: Stored(ref, at, 0) for at, no in enumerate(values)}}
    # rows that came one by one share one mapping, however many they are
    last = manifest.parts[-1].columns if manifest.parts else None
    return last if last == layout else layout


def _patch(values: Values, first_row_no: int, now: datetime) -> Patch:
    return Patch(
        {
            no: {first_row_no + at: Entry(value, now) for at, value in column.items()}
            for no, column in values.items()
        }
    )
