"""Versions of a sheet: one is added with every structural change, in its transaction; read, and listed."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from storage.domain.columns import Column
from storage.domain.errors import NotFound
from storage.domain.ids import CellAddress, cell_id
from storage.domain.keys import Principal
from storage.domain.paging import Page, PageRequest, page_of, plan_page
from storage.domain.sheets import Sheet
from storage.domain.version_changes import differing_columns, row_changes, written_places
from storage.domain.versions import (
    LONGEST_NAME,
    Delta,
    Structure,
    Version,
    VersionSource,
    cell_deltas,
    row_deltas,
)
from storage.engine.catalog import Connection
from storage.engine.rows.columns import select_columns
from storage.engine.rows.sheet_scores import score_configuration
from storage.engine.rows.sheets import find_sheet, update_sheet
from storage.engine.rows.versions import find_snapshot_no, find_version, insert_version, select_versions
from storage.engine.snapshots import Snapshot
from storage.store import Store

NO_VERSION = "No such version"
_MOST_IDS = 1_000


def record_version(
    connection: Connection,
    store: Store,
    *,
    sheet_no: int,
    number: int,
    name: str,
    user_id: int,
    snapshot_no: int,
    row_count: int,
    title: str,
    index: int,
    columns: Sequence[Column],
    source: VersionSource,
    deltas: Sequence[Delta],
    now: datetime,
    source_version_id: UUID | None = None,
) -> UUID:
    """Add a version of the sheet as it stands after the change; return its id.

    `deltas` are those of the structure; what happened to rows and cells since the version before is found
    here.
    """
    deltas = [*deltas, *_content_deltas(connection, store, sheet_no, number - 1, snapshot_no, columns)]
    metadata = {
        "row_count": row_count,
        "column_count": len(columns),
        "source": source,
        "source_version_id": source_version_id and str(source_version_id),
        "delta_count": len(deltas),
    }
    version_id = store.new_id()
    values = {
        "id": version_id,
        "sheet_no": sheet_no,
        "version_number": number,
        "name": name[:LONGEST_NAME],
        "user_id": user_id,
        "snapshot_no": snapshot_no,
        "metadata": metadata,
        "deltas": [delta.to_json() for delta in deltas],
        "score_configuration": score_configuration(connection, sheet_no),
        "created_at": now,
    }
    insert_version(connection, values, Structure(title, index, tuple(columns)))
    return version_id


def add_version(
    connection: Connection,
    store: Store,
    who: Principal,
    sheet: Sheet,
    *,
    name: str,
    source: VersionSource,
    deltas: Sequence[Delta],
    now: datetime,
    source_version_id: UUID | None = None,
) -> UUID:
    """Count a sheet's versions on and add the one of its state now; return its id.

    `sheet` is as the change left it, but for the count.
    """
    number = sheet.version_count + 1
    update_sheet(connection, sheet.no, {"version_count": number, "updated_at": now})
    return record_version(
        connection,
        store,
        sheet_no=sheet.no,
        number=number,
        name=name,
        user_id=who.user_id,
        snapshot_no=sheet.head_no,
        row_count=sheet.row_count,
        title=sheet.title,
        index=sheet.index,
        columns=select_columns(connection, sheet.no),
        source=source,
        deltas=deltas,
        now=now,
        source_version_id=source_version_id,
    )


def _content_deltas(
    connection: Connection,
    store: Store,
    sheet_no: int,
    before_number: int,
    snapshot_no: int,
    columns: Sequence[Column],
) -> list[Delta]:
    before_no = find_snapshot_no(connection, sheet_no, before_number)
    if before_no is None or before_no == snapshot_no:
        return []
    before = store.snapshots.peek(connection, before_no)
    after = store.snapshots.peek(connection, snapshot_no)
    old, new = before.manifest, after.manifest
    rows = row_deltas(row_changes(old, new), old.row_count, new.row_count)
    return [*rows, *cell_deltas({one.no: one for one in columns}, _written(store, before, after, columns))]


def _written(
    store: Store, before: Snapshot, after: Snapshot, columns: Sequence[Column]
) -> dict[int, list[str]]:
    """Return ids of cells of rows of both states that patches wrote, by column: the first 1,000.

    A column whose values stand elsewhere now has no ids: which cells differ is told by comparing.
    """
    known = {no for part in before.manifest.parts for no in part.columns}
    nos = [column.no for column in columns if column.no in known]
    found: dict[int, list[str]] = {}
    for no in sorted(differing_columns(before.manifest, after.manifest, nos)):
        found[no] = []
    left = _MOST_IDS
    for no, rows in written_places(before.overlay, after.overlay).items():
        if no not in nos:
            continue
        stayed = [row for row in sorted(rows) if _stayed(before, after, row)][:left]
        if stayed:
            ids = [str(cell_id(store.cell_key, CellAddress(no, row))) for row in stayed]
            found.setdefault(no, []).extend(ids)
            left -= len(ids)
    return found


def _stayed(before: Snapshot, after: Snapshot, row_no: int) -> bool:
    return before.manifest.find_index(row_no) is not None and after.manifest.find_index(row_no) is not None


def list_versions(
    store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, request: PageRequest
) -> Page[Version]:
    """List the versions of a sheet by number (E15), without their structure.

    Raises:
        NotFound: no such sheet.
        InvalidCursor: the cursor is of another list, order or filter.
    """
    window = plan_page(store.cursor_key, request, sort="version_number", filters={"sheet": str(sheet_id)})
    with store.catalog.read() as connection:
        sheet = _require_sheet(connection, who, table_id, sheet_id)
        found = select_versions(
            connection, sheet.no, after=window.position, descending=window.descending, limit=window.limit
        )
    return page_of(store.cursor_key, window, found, lambda version: version.version_number)


def require_version(connection: Connection, sheet_no: int, wanted: int | UUID) -> Version:
    """Return a whole version by number or id, within a transaction of the caller.

    Raises:
        NotFound: the sheet has no such version.
    """
    found = find_version(connection, sheet_no, wanted)
    if found is None:
        raise NotFound(NO_VERSION)
    return found


def _require_sheet(connection: Connection, who: Principal, table_id: UUID, sheet_id: UUID) -> Sheet:
    # not from storage.sheets, which records versions itself
    found = find_sheet(connection, who.workspace_id, table_id, sheet_id)
    if found is None:
        raise NotFound("No such sheet")
    return found
