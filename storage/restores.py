"""Versions made on purpose: the state of now under a name, and an earlier state brought back (E14)."""

from uuid import UUID

from storage.audit import record_audit
from storage.column_binding import bind_again
from storage.domain.columns import Column
from storage.domain.errors import Conflict, invalid
from storage.domain.keys import Principal
from storage.domain.sheets import Sheet
from storage.domain.versions import Structure, Version, restored
from storage.engine.catalog import Connection
from storage.engine.rows.column_edges import delete_edges
from storage.engine.rows.columns import mark_columns_deleted, select_columns, update_columns
from storage.engine.rows.recalculations import select_open_recalculations
from storage.engine.rows.sheet_scores import carry_score
from storage.engine.rows.sheets import update_sheet
from storage.engine.rows.tables import touch_table
from storage.engine.snapshots import commit, commit_again
from storage.mirrors import columns_read_elsewhere, mark_restored
from storage.sheets import require_sheet
from storage.store import Store
from storage.versions import add_version, require_version


def create_version(
    store: Store,
    who: Principal,
    *,
    table_id: UUID,
    sheet_id: UUID,
    name: str | None = None,
    source_version_id: UUID | None = None,
) -> Version:
    """Save the sheet's state under a name, or bring the state of an earlier version back as a new one (E14).

    A restore costs the same however many rows there are, and computes nothing.

    Raises:
        NotFound: no such sheet or version.
        Invalid: there is neither a name nor a source.
        Conflict: an operation writes the sheet, so that it cannot be restored.
        DependencyCycle: columns of other sheets read what would read them again.
    """
    if source_version_id is None and name is None:
        raise invalid("name", "is required where source_version_id is not given", "missing")
    with store.catalog.transaction() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        if source_version_id is None:
            version_id = add_version(
                connection,
                store,
                who,
                sheet,
                name=name or "",
                source="named",
                deltas=[],
                now=store.now(),
            )
            carry_score(
                connection,
                sheet.no,
                source=sheet.version_count,
                made_of=sheet.head_no,
                number=sheet.version_count + 1,
                snapshot_no=sheet.head_no,
            )
        else:
            version_id = _restore(connection, store, who, sheet, name, source_version_id)
        touch_table(connection, sheet.table_no, store.now())
        details = {"version_id": str(version_id), "version_number": sheet.version_count + 1}
        action = "save_version" if source_version_id is None else "restore"
        record_audit(connection, store, who, action=action, kind="sheet", entity_id=sheet.id, details=details)
        return require_version(connection, sheet.no, version_id)


def _restore(
    connection: Connection,
    store: Store,
    who: Principal,
    sheet: Sheet,
    name: str | None,
    source_version_id: UUID,
) -> UUID:
    source = require_version(connection, sheet.no, source_version_id)
    if sheet.writer_no is not None or select_open_recalculations(connection, sheet.no):
        raise Conflict("An operation writes this sheet now; wait for it or cancel it")
    if source.structure is None:
        raise RuntimeError("a version was read without its structure")
    now = store.now()
    head = store.snapshots.get(connection, sheet.head_no)
    state = store.snapshots.get(connection, source.snapshot_no)
    new = commit_again(connection, head, state, next_row_no=sheet.next_row_no, now=now)
    read = columns_read_elsewhere(connection, [sheet.no])
    restore_columns(connection, store, select_columns(connection, sheet.no), source.structure, sheet)
    read += columns_read_elsewhere(connection, [sheet.no])
    outdated = mark_restored(
        connection,
        store,
        new,
        set(read),
        now,
        next_row_no=sheet.next_row_no,
        since=source.snapshot_no,
    )
    if outdated:
        new = commit(connection, new, new.manifest, patch=outdated, next_row_no=sheet.next_row_no, now=now)
    update_sheet(connection, sheet.no, {"title": source.structure.title})
    after = require_sheet(connection, who, sheet.table_id, sheet.id)
    if after.head_no != new.no:
        raise RuntimeError("the sheet's head is not the snapshot just committed")
    version_id = add_version(
        connection,
        store,
        who,
        after,
        name=name or f"Version {source.version_number} restored",
        source="restored",
        deltas=[restored(source.id, sheet.version_count, source.version_number)],
        now=now,
        source_version_id=source.id,
    )
    carry_score(
        connection,
        sheet.no,
        source=source.version_number,
        made_of=source.snapshot_no,
        number=sheet.version_count + 1,
        snapshot_no=new.no,
    )
    return version_id


def restore_columns(
    connection: Connection, store: Store, now_there: list[Column], structure: Structure, sheet: Sheet
) -> None:
    """Bring columns back as they stood; those that came later go."""
    wanted = {column.no: column for column in structure.columns}
    mark_columns_deleted(
        connection, [column.no for column in now_there if column.no not in wanted], store.now()
    )
    there = {column.no: column for column in now_there}
    changed = [column for column in structure.columns if there.get(column.no) != column]
    update_columns(connection, sheet.no, changed)
    for column in now_there:
        if column.no not in wanted:
            delete_edges(connection, column.no)
    bind_again(connection, structure.columns)
