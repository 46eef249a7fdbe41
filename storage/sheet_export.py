"""Export of a sheet, as it stands now or as a version had it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

from storage.domain.columns import Column
from storage.domain.errors import NotFound
from storage.domain.keys import Principal
from storage.domain.sheets import Sheet
from storage.engine.catalog import Connection
from storage.engine.rows.columns import select_columns
from storage.engine.rows.sheets import find_sheets_by_title
from storage.engine.rows.versions import find_version_state
from storage.engine.rows.workspaces import find_workspace_id
from storage.engine.snapshots import Snapshot
from storage.sheets import NO_SHEET, require_sheet
from storage.store import Store
from storage.versions import NO_VERSION

FORMATS = ("parquet", "csv", "jsonl")


@dataclass(frozen=True, slots=True)
class SheetExport:
    """One state of a sheet, which stays as it is while it is read."""

    store: Store
    title: str
    columns: tuple[Column, ...]
    snapshot: Snapshot

    @property
    def row_count(self) -> int:
        return self.snapshot.manifest.row_count

    def pieces(self, kind: str, report: Callable[[int], None] = lambda _rows: None) -> Iterator[bytes]:
        """Yield the bytes of a file of a format, some megabytes at once, unless a row is larger.

        `report` is called with the rows that were spelled since it was called last.
        """
        # brings pyarrow, which is slow to load
        from storage.engine.sheet_export import export_pieces  # noqa: PLC0415

        if kind not in FORMATS:
            raise ValueError(f"{kind} is no format of sheets")
        return export_pieces(self.store.segments, self.snapshot, self.columns, kind, report)  # type: ignore[arg-type]


def plan_sheet_export(
    store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, version_number: int | None = None
) -> SheetExport:
    """Take a sheet, now or as a version had it, to be written.

    Raises:
        NotFound: no such sheet or version.
    """
    with store.catalog.read() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        return _taken(connection, store, sheet, version_number)


def plan_titled_export(
    store: Store, workspace: str, place: str, *, version_number: int | None = None
) -> SheetExport:
    """Take a sheet by its place, `TABLE/SHEET`: titles or ids, for the operator.

    Raises:
        NotFound: no such workspace, sheet or version, or several sheets are called so.
    """
    with store.catalog.read() as connection:
        workspace_id = find_workspace_id(connection, workspace)
        if workspace_id is None:
            raise NotFound(f"No workspace is named {workspace}")
        found: list[Sheet] = []
        # titles may hold slashes, too
        for at, letter in enumerate(place):
            if letter == "/":
                found += find_sheets_by_title(connection, workspace_id, place[:at], place[at + 1 :])
        if len(found) > 1:
            named = ", ".join(f"{sheet.table_id}/{sheet.id}" for sheet in found)
            raise NotFound(f"{len(found)} sheets are called {place}; name one by its ids: {named}")
        if not found:
            raise NotFound(f"{NO_SHEET} as {place}: it is TABLE/SHEET, by titles or ids")
        return _taken(connection, store, found[0], version_number)


def _taken(connection: Connection, store: Store, sheet: Sheet, version_number: int | None) -> SheetExport:
    if version_number is None:
        head = store.snapshots.get(connection, sheet.head_no)
        return SheetExport(store, sheet.title, tuple(select_columns(connection, sheet.no)), head)
    state = find_version_state(connection, sheet.no, version_number)
    if state is None:
        raise NotFound(NO_VERSION)
    snapshot_no, structure = state
    snapshot = store.snapshots.get(connection, snapshot_no)
    return SheetExport(store, structure.title, structure.columns, snapshot)
