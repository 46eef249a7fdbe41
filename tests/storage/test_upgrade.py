"""A home made by an earlier release opens, and goes on."""

import sqlalchemy as sa

from storage.domain.keys import Principal
from storage.domain.paging import PageRequest
from storage.engine.migrate import stored_revision
from storage.engine.revisions import known_revisions
from storage.row_changes import add_rows
from storage.rows import list_rows
from storage.settings import Settings
from storage.store import Store, open_store
from storage.tables import create_table
from tests.importing import imported_sheet

_ADDED = ("manifest_no", "patches", "overlay_cells", "overlay_bytes", "part_count")


def test_sheets_of_a_home_without_overlays_are_read_and_written(
    store: Store, settings: Settings, who: Principal
) -> None:
    table = create_table(store, who)
    sheet = imported_sheet(store, who, table.id, ["a"], [["x"]])
    with store.catalog.transaction() as connection:
        for name in _ADDED:
            connection.execute(sa.text(f"ALTER TABLE snapshots DROP COLUMN {name}"))
        connection.execute(sa.text("DROP TABLE patches"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0001_first_release'"))
    store.close()
    upgraded = open_store(settings)
    place = {"table_id": table.id, "sheet_id": sheet.id}
    page = list_rows(upgraded, who, **place, request=PageRequest(9))
    add_rows(upgraded, who, **place, values=[{page.columns[0].id: "y"}])
    rows = list_rows(upgraded, who, **place, request=PageRequest(9)).page.items
    assert [row.cells[0].value for row in rows] == ["x", "y"]
    assert stored_revision(upgraded.catalog) == known_revisions("catalog")[-1]
    upgraded.close()
