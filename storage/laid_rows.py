"""Rows and columns laid into a sheet that has none: those of a dataset, with columns that are computed."""

from collections.abc import Sequence
from datetime import datetime

from storage.column_binding import bind
from storage.domain.cells import STALE
from storage.domain.column_types.binding import CodeReads
from storage.domain.columns import Column, ranks_after
from storage.domain.keys import Principal
from storage.domain.manifests import Fill, Manifest
from storage.domain.operations import Operation
from storage.domain.overlay import Patch
from storage.domain.reports import ReportColumn
from storage.domain.sheets import Sheet
from storage.domain.versions import columns_added
from storage.engine.catalog import Connection
from storage.engine.rows.columns import insert_text_columns, select_columns
from storage.engine.snapshots import commit
from storage.new_columns import NewColumn, insert_bound
from storage.recalculations import enqueue_columns
from storage.shared_rows import SharedRows
from storage.store import Store
from storage.structure import record_structure


def lay_shared(
    connection: Connection,
    store: Store,
    who: Principal,
    sheet: Sheet,
    shared: SharedRows,
    columns: Sequence[ReportColumn],
    reads: Sequence[CodeReads | None],
) -> Operation | None:
    """Commit shared rows and columns that read them to a bare sheet; return what computes these, if any.

    Raises:
        InvalidConfig: a column's configuration does not fit.
    """
    now = store.now()
    texts = add_text_columns(connection, store, sheet, shared.titles, now)
    manifest, patch = shared.lay(connection, sheet.no, texts, now)
    return lay_rows(connection, store, who, sheet, manifest, patch, shared.next_row_no, columns, reads)


def add_text_columns(
    connection: Connection, store: Store, sheet: Sheet, titles: Sequence[str], now: datetime
) -> list[Column]:
    """Add text columns to a bare sheet."""
    return insert_text_columns(
        connection,
        sheet_no=sheet.no,
        workspace_id=sheet.workspace_id,
        titles=titles,
        ids=[store.new_id() for _ in titles],
        ranks=ranks_after(0, len(titles)),
        now=now,
    )


def lay_rows(
    connection: Connection,
    store: Store,
    who: Principal,
    sheet: Sheet,
    manifest: Manifest,
    patch: Patch | None,
    next_row_no: int,
    columns: Sequence[ReportColumn],
    reads: Sequence[CodeReads | None],
) -> Operation | None:
    """Commit rows with further columns, all stale, and queue their computation; None: there are none."""
    now = store.now()
    added: list[Column] = []
    texts = select_columns(connection, sheet.no)
    for column, read in zip(columns, reads, strict=True):
        new = NewColumn(column.title, column.type, column.config, is_output_column=column.is_output_column)
        there = [*texts, *added]
        bound = bind(
            connection,
            who,
            kind=new.type,
            config=new.config,
            dependencies=None,
            columns=there,
            code_reads=read,
        )
        added.append(insert_bound(connection, store, sheet, there, new, bound, now))
    manifest = manifest.with_fills({column.no: Fill(None, now, STALE) for column in added})
    head = store.snapshots.peek(connection, sheet.head_no)
    snapshot = commit(connection, head, manifest, patch=patch, next_row_no=next_row_no, now=now)
    there = select_columns(connection, sheet.no)
    record_structure(
        connection,
        store,
        who,
        sheet,
        snapshot=snapshot,
        name=f"{manifest.row_count} rows and {len(there)} columns laid",
        deltas=[columns_added(there)],
        now=now,
    )
    if not added:
        return None
    return enqueue_columns(connection, store, who, sheet, added, manifest.row_count)
