"""The commit of an import: files first, then everything that names them in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from storage.domain.columns import Column, match_titles, ranks_after
from storage.domain.errors import CommitConflict
from storage.domain.imports import Imported, check_imported, imported_parts, source_of
from storage.domain.manifests import Manifest
from storage.domain.operations import IMPORTS, Operation
from storage.domain.sheets import Sheet, is_untouched
from storage.domain.versions import Delta, columns_added, columns_deleted
from storage.engine.catalog import Connection
from storage.engine.rows.audit import insert_audit_entry
from storage.engine.rows.columns import insert_text_columns, mark_columns_deleted, select_columns
from storage.engine.rows.segments import insert_segments
from storage.engine.rows.sheets import find_sheet_by_no, update_sheet
from storage.engine.rows.tables import touch_table
from storage.engine.snapshots import Snapshot, commit
from storage.import_events import record_import_succeeded
from storage.mirrors import columns_read_elsewhere, mark_gone, mark_moved
from storage.operations import ClaimRefused, succeed
from storage.store import Store
from storage.versions import record_version

_TRIES = 5


def commit_import(store: Store, operation: Operation, imported: Imported) -> Sheet:
    """Publish an import whose files are written: rows, new columns, a version, and the operation's success.

    Raises:
        ClaimRefused: the operation was cancelled, failed or taken over, or its sheet deleted.
        ImportRefused: a title is that of a computed column, or there would be too many columns.
        CommitConflict: others kept changing the sheet.
        ValueError: the segments do not make up the rows.
        In each case nothing was published.
    """
    check_imported(imported)
    for left in reversed(range(_TRIES)):
        try:
            return _commit(store, operation, imported)
        except CommitConflict:
            if not left:
                raise
    raise AssertionError("the last try returns or raises")


@dataclass(frozen=True, slots=True)
class _Base:
    """What the import joins: a sheet still as it was born blank counts as having nothing."""

    kept: list[Column]
    replaced: list[Column]
    manifest: Manifest
    last_rank: int


def _commit(store: Store, operation: Operation, imported: Imported) -> Sheet:
    now = store.now()
    with store.catalog.transaction() as connection:
        succeed(connection, store, operation, message=imported.message, rows_added=imported.row_count)
        sheet = find_sheet_by_no(connection, operation.sheet_no or 0)
        if sheet is None:
            raise ClaimRefused(f"the sheet of operation {operation.no} is deleted")
        head = store.snapshots.get(connection, sheet.head_no)
        base = _base_of(sheet, select_columns(connection, sheet.no), head)
        found = match_titles(base.kept, imported.titles)
        added = _add_columns(connection, store, sheet, base, imported.titles, found, now)
        read = columns_read_elsewhere(connection, [sheet.no])
        mark_columns_deleted(connection, [column.no for column in base.replaced], now)
        insert_segments(connection, sheet.no, imported.segments, now)
        by_title = {column.title: column.no for column in (*base.kept, *added)}
        column_nos = [by_title[title] for title in imported.titles]
        computed_nos = [column.no for column in base.kept if column.computed]
        parts = imported_parts(imported, column_nos, sheet.next_row_no, now, computed_nos)
        manifest = base.manifest.appended(parts)
        next_row_no = sheet.next_row_no + imported.row_count
        patch = mark_moved(connection, store, head, now, next_row_no=sheet.next_row_no, shifted=False)
        new = commit(connection, head, manifest, patch=patch or None, next_row_no=next_row_no, now=now)
        if base.replaced:
            mark_gone(connection, store, [sheet.no], read, now)
        number = sheet.version_count + 1
        update_sheet(connection, sheet.no, {"version_count": number})
        record_version(
            connection,
            store,
            sheet_no=sheet.no,
            number=number,
            name=f"{imported.row_count} rows imported",
            user_id=operation.user_id,
            snapshot_no=new.no,
            row_count=manifest.row_count,
            title=sheet.title,
            index=sheet.index,
            columns=[*base.kept, *added],
            source="import",
            deltas=_deltas(base, added),
            now=now,
        )
        touch_table(connection, sheet.table_no, now)
        if operation.kind in IMPORTS:
            _audit(connection, operation, sheet, imported, now)
        record_import_succeeded(
            connection,
            store,
            operation,
            rows_added=imported.row_count,
            row_count=manifest.row_count,
            version_number=number,
        )
        after = find_sheet_by_no(connection, sheet.no)
    if after is None:
        raise RuntimeError("the sheet just written is gone")
    return after


def _base_of(sheet: Sheet, columns: list[Column], head: Snapshot) -> _Base:
    manifest = head.manifest
    last_rank = max((column.position_rank for column in columns), default=0)
    titled = [column.title for column in columns]
    if head.overlay or not is_untouched(sheet.version_count, titled, manifest):
        return _Base(columns, [], manifest, last_rank)
    # its column goes even if the file has one of that title, so that the order is the file's
    return _Base([], columns, Manifest(), last_rank)


def _add_columns(
    connection: Connection,
    store: Store,
    sheet: Sheet,
    base: _Base,
    titles: Sequence[str],
    found: Sequence[Column | None],
    now: datetime,
) -> list[Column]:
    new = [title for title, column in zip(titles, found, strict=True) if column is None]
    return insert_text_columns(
        connection,
        sheet_no=sheet.no,
        workspace_id=sheet.workspace_id,
        titles=new,
        ids=[store.new_id() for _ in new],
        ranks=ranks_after(base.last_rank, len(new)),
        now=now,
    )


def _deltas(base: _Base, added: Sequence[Column]) -> list[Delta]:
    changes = [columns_deleted(base.replaced)] if base.replaced else []
    if added:
        changes.append(columns_added(added))
    return changes


def _audit(
    connection: Connection, operation: Operation, sheet: Sheet, imported: Imported, now: datetime
) -> None:
    insert_audit_entry(
        connection,
        workspace_id=operation.workspace_id,
        user_id=operation.user_id,
        action="import",
        kind="sheet",
        entity_id=str(sheet.id),
        details={
            "operation_id": operation.id,
            "source": source_of(operation),
            "row_count": imported.row_count,
            "column_count": len(imported.titles),
        },
        created_at=now,
    )
