"""Sheets as DuckDB views say what readers of the sheet are told, whatever lies in segments and overlays."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from api.cli import main
from storage.cells import edit_cell
from storage.domain.keys import Principal
from storage.domain.paging import PageRequest
from storage.domain.sheets import Sheet
from storage.engine import table_views
from storage.restores import create_version
from storage.row_changes import add_rows, delete_rows
from storage.rows import list_rows
from storage.settings import Settings
from storage.sheet_changes import change_sheet
from storage.sheet_upkeep import compact_sheet
from storage.sheet_views import AGAIN, publish_sheet_views, sheet_views_due, view_file_key
from storage.sheets import create_blank_sheet
from storage.store import Store, opened
from storage.tables import create_table, delete_table
from tests.importing import import_rows, imported_sheet, start

ROWS = [[f"r{at}", at, at / 2 + 0.25, at % 3 == 0, {"k": at}, None] for at in range(20)]
TITLES = ["Name", "n", "d", "b", 'j "x"', "name"]


@pytest.fixture
def sheet(store: Store, who: Principal) -> Sheet:
    table = create_table(store, who, title="My Table")
    return imported_sheet(store, who, table.id, TITLES, ROWS)


def place(sheet: Sheet) -> dict[str, Any]:
    return {"table_id": sheet.table_id, "sheet_id": sheet.id}


def shown(store: Store, who: Principal, sheet: Sheet, **query: Any) -> list[tuple[Any, ...]]:
    """Rows as views have them: of one type a column."""
    page = list_rows(store, who, **place(sheet), request=PageRequest(1000), **query).page
    return [(row.row_index, *(cell.display_value for cell in row.cells)) for row in page.items]


def asked(path: Path, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS t (READ_ONLY)")
        return connection.execute(query).fetchall()


def as_text(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Spell values of typed columns as they are shown."""

    def spell(value: Any) -> Any:
        return {True: "true", False: "false"}[value] if isinstance(value, bool) else value

    return [(row[0], *(None if one is None else str(spell(one)) for one in row[1:])) for row in rows]


def test_a_published_file_shows_sheets_with_types_edits_and_versions(
    store: Store, who: Principal, sheet: Sheet
) -> None:
    assert sheet_views_due(store) == 1
    assert publish_sheet_views(store) == 1
    path = store.data.path(view_file_key("default", sheet.table_id))
    rows = asked(path, 'SELECT * FROM t."My Table"."People" ORDER BY row_index')
    assert as_text(rows) == shown(store, who, sheet)
    assert [type(value).__name__ for value in rows[1][1:6]] == ["str", "int", "float", "bool", "str"]
    names = asked(path, 'SELECT column_name FROM (DESCRIBE t."My Table"."People")')
    assert [name for (name,) in names] == ["row_index", "Name", "n", "d", "b", 'j "x"', "name 2"]

    create_version(store, who, **place(sheet), name="saved")
    page = list_rows(store, who, **place(sheet), request=PageRequest(9)).page
    edit_cell(store, who, **place(sheet), cell_id=page.items[3].cells[1].id, value=-5)
    edit_cell(store, who, **place(sheet), cell_id=page.items[4].cells[0].id, value=None)
    delete_rows(store, who, **place(sheet), row_indices=[0, 7, 9])
    publish_sheet_views(store)
    rows = asked(path, 'SELECT * FROM t."My Table".People ORDER BY row_index')
    assert as_text(rows) == shown(store, who, sheet)
    saved = asked(path, 'SELECT * FROM t."My Table"."People@3" ORDER BY row_index')
    assert as_text(saved) == shown(store, who, sheet, version_number=3)
    assert rows[2][2] == -5

    delete_table(store, who, sheet.table_id)
    publish_sheet_views(store)
    assert not path.exists()


def test_what_is_joined_from_many_parts_reads_as_the_sheet(
    store: Store, who: Principal, sheet: Sheet
) -> None:
    for at in range(5):
        titles = ["n", "late"] if at % 2 else ["Name", "n"]
        import_rows(
            store,
            start(store, who, sheet.table_id, sheet.id).operation,
            titles,
            [[f"i{at}", at], ["x", "\0'"]],
        )
        add_rows(store, who, **place(sheet), count=2)
    delete_rows(store, who, **place(sheet), row_indices=[1, 3, 5, 21, 24])

    def check() -> None:
        publish_sheet_views(store)
        path = store.data.path(view_file_key("default", sheet.table_id))
        rows = asked(path, 'SELECT row_index, "Name" FROM t."My Table".People ORDER BY row_index')
        assert rows == [row[:2] for row in shown(store, who, sheet)]
        mixed = asked(path, 'SELECT n FROM t."My Table".People ORDER BY row_index')
        assert mixed[0] == ("0",)
        assert ('"i3"',) in mixed
        late = asked(path, "SELECT late FROM t.\"My Table\".People WHERE late LIKE '%''%'")
        assert late == [('"\\u0000\'"',)] * 2

    check()
    page = list_rows(store, who, **place(sheet), request=PageRequest(9)).page
    edit_cell(store, who, **place(sheet), cell_id=page.items[6].cells[0].id, value="edited")
    check()
    compact_sheet(store, sheet.no, everything=True)
    check()


def test_empty_sheets_and_titles_like_others_have_views(store: Store, who: Principal) -> None:
    table = create_table(store, who, title="Main")
    create_blank_sheet(store, who, table_id=table.id, title="SHEET 1")
    bare = start(store, who, table.id).sheet
    (first, *_) = table.sheet_row_counts
    change_sheet(store, who, table_id=table.id, sheet_id=first, title='q"x')
    publish_sheet_views(store)
    path = store.data.path(view_file_key("default", table.id))
    assert asked(path, 'SELECT * FROM t."Main 2"."q""x"') == [(0, "")]
    assert asked(path, 'SELECT * FROM t."Main 2"."SHEET 1"') == [(0, "")]
    assert asked(path, f'SELECT count(*) FROM t."Main 2"."{bare.title}"') == [(0,)]
    assert sheet_views_due(store) == 1


def test_sql_of_the_operator_names_sheets(
    store: Store, settings: Settings, who: Principal, stranger: Principal, sheet: Sheet
) -> None:
    create_table(store, stranger, title="Theirs")
    page = list_rows(store, who, **place(sheet), request=PageRequest(9)).page
    edit_cell(store, who, **place(sheet), cell_id=page.items[0].cells[0].id, value="edited")

    def sql(query: str) -> Any:
        return CliRunner().invoke(main, ["sql", "--home", str(settings.home), "--format", "csv", query])

    found = sql('SELECT "Name", n FROM "My Table"."People" WHERE n < 2 ORDER BY row_index')
    assert (found.exit_code, found.output) == (0, "Name,n\nedited,0\nr1,1\n")
    assert sql('SELECT "Name" FROM "my table"."people@2" LIMIT 1').output == "Name\nr0\n"
    assert sql("SELECT count(*) AS c FROM request_logs").output == "c\n0\n"
    for query in ('SELECT * FROM "Theirs"."Sheet 1"', 'SELECT * FROM "My Table"."People@9"'):
        assert sql(query).exit_code == 1


def test_a_nul_in_titles_leaves_names_that_differ(store: Store, who: Principal) -> None:
    table = create_table(store, who, title="\0")
    sheet = imported_sheet(store, who, table.id, ["\0", "a", "a\0"], [["1", "2", "3"]])
    change_sheet(store, who, **place(sheet), title="\0\0")
    publish_sheet_views(store)
    path = store.data.path(view_file_key("default", table.id))
    assert asked(path, 'SELECT untitled, a, "a 2" FROM t.untitled.untitled') == [("1", "2", "3")]


def test_a_sheet_called_as_a_version_is_shown_rather_than_it(
    store: Store, who: Principal, sheet: Sheet
) -> None:
    saved = create_version(store, who, **place(sheet), name="saved")
    name = f"People@{saved.version_number}"
    other = imported_sheet(store, who, sheet.table_id, ["x"], [["mine"]])
    change_sheet(store, who, **place(other), title=name, index=0)
    publish_sheet_views(store)
    path = store.data.path(view_file_key("default", sheet.table_id))
    assert asked(path, f'SELECT x FROM t."My Table"."{name}"') == [("mine",)]


def test_a_table_that_duckdb_refuses_does_not_hold_back_the_others(
    store: Store,
    who: Principal,
    sheet: Sheet,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    publish_sheet_views(store)
    bad, good = (create_table(store, who, title=title) for title in ("bad", "good"))
    create = table_views.create_sheet_view

    def refuse(connection: Any, schema: str, name: str, query: str) -> None:
        create(connection, schema, name, "SELECT no" if "bad" in schema else query)

    monkeypatch.setattr(table_views, "create_sheet_view", refuse)
    publish_sheet_views(store, again=timedelta(days=1))
    assert not store.data.path(view_file_key("default", bad.id)).exists()
    assert store.data.path(view_file_key("default", good.id)).exists()
    (line,) = [one.getMessage() for one in caplog.records if one.name == "promptlake.views"]
    assert str(bad.id) in line


def test_views_of_a_moved_home_are_published_anew_and_others_only_while_they_are_young(
    store: Store, who: Principal, sheet: Sheet, settings: Settings
) -> None:
    publish_sheet_views(store)
    later = replace(store, now=lambda: store.now() + timedelta(days=4))
    assert publish_sheet_views(store, again=AGAIN) == 1
    # what was written within the last minute may have come to light after the publication
    assert publish_sheet_views(later) == 1
    assert publish_sheet_views(later, again=AGAIN) == 0
    rows = shown(store, who, sheet)
    store.close()
    moved = settings.root.rename(settings.root.with_name("moved"))
    with opened(Settings(home=moved)) as there:
        assert sheet_views_due(there) == 1
        assert publish_sheet_views(there) == 1
        path = there.data.path(view_file_key("default", sheet.table_id))
        assert as_text(asked(path, 'SELECT * FROM t."My Table"."People" ORDER BY row_index')) == rows
