"""Rows added to a draft: their keys are its columns, and new ones join."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from storage.audit import record_audit
from storage.dataset_groups import require_group
from storage.dataset_outcomes import KIND
from storage.dataset_sheets import require_group_sheet
from storage.domain.cells import check_value
from storage.domain.columns import LONGEST_TITLE, MOST_COLUMNS, Column, ranks_after
from storage.domain.datasets import Dataset
from storage.domain.drafts import DraftState, Trigger, plan_move
from storage.domain.encodings import encoding_of
from storage.domain.errors import Invalid, Problem, invalid
from storage.domain.imports import ImportedSegment
from storage.domain.keys import Principal
from storage.domain.manifests import Fill, Part, SegmentRef, Source, Stored
from storage.domain.new_rows import LARGE_CELLS
from storage.domain.overlay import Entry, Patch
from storage.domain.sheets import Sheet
from storage.engine.catalog import Connection
from storage.engine.rows.columns import insert_text_columns, select_columns
from storage.engine.rows.datasets import find_draft, update_dataset
from storage.engine.rows.segments import insert_segments
from storage.engine.segments import segment_key, write_segment
from storage.engine.snapshots import commit
from storage.store import Store

MOST_ROWS = 1_000

Values = Mapping[str, Mapping[int, Any]]
"""Values by title and place among the new rows."""


def add_draft_rows(
    store: Store, who: Principal, *, group_id: int, rows: Sequence[Mapping[str, Any]]
) -> Dataset:
    """Add rows at the end of a group's draft; a key that a row lacks reads as null. Return the draft.

    Raises:
        NotFound: no such group.
        NoDraft: it has no draft.
        Conflict: work on the draft is under way.
        Invalid: not 1 to 1,000 rows, a title or a value is too long, or there are too many columns.
        Unavailable: the disk is full.
    """
    if not 1 <= len(rows) <= MOST_ROWS:
        raise invalid("rows", f"must be 1 to {MOST_ROWS} rows")
    values = _by_title(rows)
    with store.catalog.read() as connection:
        _, sheet = _open(connection, who, group_id)
    with _written(store, sheet, values, len(rows)) as segment, store.catalog.transaction() as connection:
        draft, sheet = _open(connection, who, group_id)
        now = store.now()
        columns = _columns(connection, store, sheet, list(values), now)
        _lay(connection, store, sheet, columns, values, len(rows), segment, now)
        facts = {
            "column_names": [column.title for column in select_columns(connection, sheet.no)],
            "row_count": sheet.row_count + len(rows),
            "updated_at": now,
        }
        update_dataset(connection, draft.id, facts)
        record_audit(
            connection,
            store,
            who,
            action="add_rows",
            kind=KIND,
            entity_id=draft.id,
            details={"row_count": len(rows)},
        )
        found = find_draft(connection, draft.group.id)
    if found is None:
        raise RuntimeError("the draft just written is gone")
    return found


def _open(connection: Connection, who: Principal, group_id: int) -> tuple[Dataset, Sheet]:
    group = require_group(connection, who, group_id)
    draft = find_draft(connection, group.id)
    plan_move(draft.draft_state if draft else DraftState.NONE, Trigger.ADD_ROWS)
    if draft is None:
        raise RuntimeError("a draft that is not there was moved")
    return draft, require_group_sheet(connection, group)


def _by_title(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[int, Any]]:
    found: dict[str, dict[int, Any]] = {}
    for at, row in enumerate(rows):
        for title, value in row.items():
            if not 1 <= len(title) <= LONGEST_TITLE:
                where = ("body", "rows", str(at))
                raise Invalid(
                    Problem(where, f"a key must have 1 to {LONGEST_TITLE} characters", "string_length")
                )
            check_value(value, f"rows.{at}.{title}")
            found.setdefault(title, {})[at] = value
    return found


@contextmanager
def _written(store: Store, sheet: Sheet, values: Values, rows: int) -> Iterator[ImportedSegment | None]:
    """Write many values as a segment before the transaction; it is gone if the block fails."""
    if sum(map(len, values.values())) <= LARGE_CELLS:
        yield None
        return
    columns = []
    for at, column in enumerate(values.values()):
        held = [column.get(row) for row in range(rows)]
        columns.append((at, encoding_of(held), held))
    segment = write_segment(store.data, segment_key(sheet.id, store.new_id()), 0, columns)
    try:
        yield segment
    except BaseException:
        store.data.remove(segment.key)
        raise


def _columns(
    connection: Connection, store: Store, sheet: Sheet, titles: Sequence[str], now: datetime
) -> list[Column]:
    """Return the columns of titles, in their order, those that are new made."""
    there = select_columns(connection, sheet.no)
    known = {column.title for column in there}
    new = [title for title in titles if title not in known]
    if len(there) + len(new) > MOST_COLUMNS:
        raise invalid("rows", f"would give the draft more than {MOST_COLUMNS} columns", "too_long")
    added = insert_text_columns(
        connection,
        sheet_no=sheet.no,
        workspace_id=sheet.workspace_id,
        titles=new,
        ids=[store.new_id() for _ in new],
        ranks=ranks_after(max((column.position_rank for column in there), default=0), len(new)),
        now=now,
    )
    by_title = {column.title: column for column in (*there, *added)}
    return [by_title[title] for title in titles]


def _lay(
    connection: Connection,
    store: Store,
    sheet: Sheet,
    columns: Sequence[Column],
    values: Values,
    rows: int,
    segment: ImportedSegment | None,
    now: datetime,
) -> None:
    head = store.snapshots.get(connection, sheet.head_no)
    first = sheet.next_row_no
    layout: dict[int, Source] = {column.no: Fill(None) for column in columns}
    patch = None
    if segment:
        insert_segments(connection, sheet.no, [segment], now)
        ref = SegmentRef(segment.key, tuple(one.encoding for one in segment.fields), now)
        layout = {column.no: Stored(ref, at, 0) for at, column in enumerate(columns)}
    else:
        cells = {
            column.no: {first + at: Entry(value, now) for at, value in values[column.title].items()}
            for column in columns
        }
        patch = Patch(cells) if cells else None
    manifest = head.manifest.appended([Part(first, rows, layout, now)])
    commit(connection, head, manifest, patch=patch, next_row_no=first + rows, now=now)
