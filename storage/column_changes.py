"""Columns changed (E17) and deleted (E21); what is computed from them turns stale, and nothing is started."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from storage.audit import record_audit
from storage.column_binding import Bound, Given, bind, check_acyclic, check_dependencies, read_before
from storage.domain.cells import STALE
from storage.domain.columns import Column
from storage.domain.errors import NotFound
from storage.domain.keys import Principal
from storage.domain.overlay import Patch, Restated
from storage.domain.sheets import Sheet
from storage.domain.staleness import Changed
from storage.domain.versions import column_updated, columns_deleted
from storage.engine.catalog import Connection
from storage.engine.rows.column_edges import delete_edges, replace_edges, select_direct_readers
from storage.engine.rows.columns import find_column, mark_columns_deleted, select_columns, update_column
from storage.engine.snapshots import Snapshot, commit
from storage.mirrors import stale_states
from storage.new_columns import check_title, place_column
from storage.sheets import require_sheet
from storage.staleness import NOTHING, Marked, find_turning, mark_dependents, note_marks
from storage.store import Store
from storage.structure import record_structure

NO_COLUMN = "No such column"


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What a caller changes; None leaves as it is."""

    title: str | None = None
    config: Given | None = None
    dependencies: Sequence[Given] | None = None
    is_output_column: bool | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class ColumnUpdated:
    """A changed column; the columns whose cells that invalidated, itself first, and how many turned stale."""

    column: Column
    affected: tuple[UUID, ...]
    stale_count: int
    version_number: int


@dataclass(frozen=True, slots=True)
class ColumnDeleted:
    """How many cells turned stale, and the sheet's version number."""

    stale_count: int
    version_number: int


def get_column(store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, column_id: UUID) -> Column:
    """Return a column.

    Raises:
        NotFound: no such column of that sheet.
    """
    with store.catalog.read() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        return _require(connection, sheet, column_id)


def _require(connection: Connection, sheet: Sheet, column_id: UUID) -> Column:
    found = find_column(connection, sheet.no, column_id)
    if found is None:
        raise NotFound(NO_COLUMN)
    return found


def update_column_of(
    store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, column_id: UUID, change: ColumnChange
) -> ColumnUpdated:
    """Change a column; a new title or place makes nothing stale, a new configuration its descendants too.

    Raises:
        NotFound: no such column of that sheet.
        Conflict: the title is taken.
        InvalidConfig: the configuration does not fit, or a source is missing.
        DependencyCycle: the column would read itself.
    """
    before = get_column(store, who, table_id=table_id, sheet_id=sheet_id, column_id=column_id)
    reads = None if change.config is None else read_before(store, who, before.type, change.config)
    now = store.now()
    with store.catalog.transaction() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        before = _require(connection, sheet, column_id)
        columns = select_columns(connection, sheet.no)
        bound = _bound(connection, who, before, columns, change, reads)
        after = _changed(connection, columns, before, change, bound)
        if after == before:
            return ColumnUpdated(before, (), 0, sheet.version_count)
        _write(connection, before, after, bound)
        head = store.snapshots.get(connection, sheet.head_no)
        marked = NOTHING
        if bound and before.computed:
            marked = _mark(connection, store, head, before, sheet, now)
        snapshot = _commit(connection, head, marked.patch, sheet, now)
        number = record_structure(
            connection,
            store,
            who,
            sheet,
            snapshot=snapshot,
            name=f"Column {after.title} changed",
            deltas=[column_updated(before, after)],
            now=now,
        )
        _audit(connection, store, who, "update", sheet, after)
    affected = (after.id, *(one.id for one in marked.columns)) if bound and before.computed else ()
    return ColumnUpdated(after, affected, marked.stale_count, number)


def _bound(
    connection: Connection,
    who: Principal,
    before: Column,
    columns: Sequence[Column],
    change: ColumnChange,
    reads: Any,
) -> Bound | None:
    """Return a configuration that differs from the one that is there; None where nothing changes."""
    if change.config is None:
        if change.dependencies is not None:
            check_dependencies(before.dependencies, change.dependencies)
        return None
    bound = bind(
        connection,
        who,
        kind=before.type,
        config=change.config,
        dependencies=change.dependencies,
        columns=columns,
        code_reads=reads,
    )
    if bound.config == before.config and bound.edges == list(before.dependencies):
        return None
    check_acyclic(connection, before, bound.source_nos)
    return bound


def _changed(
    connection: Connection,
    columns: Sequence[Column],
    before: Column,
    change: ColumnChange,
    bound: Bound | None,
) -> Column:
    after = before
    if bound:
        after = replace(after, config=bound.config, dependencies=bound.edges)
    if change.title is not None:
        check_title(columns, change.title, before)
        after = replace(after, title=change.title)
    if change.is_output_column is not None:
        after = replace(after, is_output_column=change.is_output_column)
    if change.position is not None:
        others = [column for column in columns if column.no != before.no]
        stands_at = [column.no for column in columns].index(before.no)
        if min(change.position, len(others)) != stands_at:
            after = replace(after, position_rank=place_column(connection, others, change.position))
    return after


def _write(connection: Connection, before: Column, after: Column, bound: Bound | None) -> None:
    names = ("title", "config", "dependencies", "is_output_column", "position_rank")
    values = {name: getattr(after, name) for name in names if getattr(after, name) != getattr(before, name)}
    update_column(connection, before.no, values)
    if bound:
        replace_edges(connection, before.no, bound.source_nos)


def _mark(
    connection: Connection, store: Store, head: Snapshot, column: Column, sheet: Sheet, now: datetime
) -> Marked:
    """Make all cells of a column stale, with those of its descendants."""
    _, own = find_turning(store, head, column.no, None)
    changed: Changed = {column.no: None}
    marked = mark_dependents(connection, store, head, changed, now, next_row_no=sheet.next_row_no, whole=True)
    note_marks(connection, {column.no: (sheet.no, None)})
    restated = {**marked.patch.restated, column.no: Restated(STALE, sheet.next_row_no)}
    return Marked(Patch(marked.patch.cells, restated), marked.columns, marked.stale_count + own)


def _commit(connection: Connection, head: Snapshot, patch: Patch, sheet: Sheet, now: datetime) -> Snapshot:
    laid = patch or None
    return commit(connection, head, head.manifest, patch=laid, next_row_no=sheet.next_row_no, now=now)


def delete_column(
    store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, column_id: UUID
) -> ColumnDeleted:
    """Delete a column (E21); columns that read it turn stale with an error that names it.

    Raises:
        NotFound: no such column of that sheet.
    """
    now = store.now()
    with store.catalog.transaction() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        column = _require(connection, sheet, column_id)
        head = store.snapshots.get(connection, sheet.head_no)
        mark_columns_deleted(connection, [column.no], now)
        states = stale_states(connection, select_direct_readers(connection, [column.no]))
        changed: Changed = {column.no: None}
        marked = mark_dependents(
            connection, store, head, changed, now, next_row_no=sheet.next_row_no, states=states
        )
        delete_edges(connection, column.no)
        patch = marked.patch or None
        manifest = head.manifest.without_columns([column.no])
        snapshot = commit(connection, head, manifest, patch=patch, next_row_no=sheet.next_row_no, now=now)
        number = record_structure(
            connection,
            store,
            who,
            sheet,
            snapshot=snapshot,
            name=f"Column {column.title} deleted",
            deltas=[columns_deleted([column])],
            now=now,
        )
        _audit(connection, store, who, "delete", sheet, column)
    return ColumnDeleted(marked.stale_count, number)


def _audit(
    connection: Connection, store: Store, who: Principal, action: str, sheet: Sheet, column: Column
) -> None:
    record_audit(
        connection,
        store,
        who,
        action=action,
        kind="column",
        entity_id=column.id,
        details={"sheet_id": str(sheet.id)},
    )
