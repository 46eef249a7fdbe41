"""A dataset version taken over to a sheet, with a report's columns: nothing is copied, nothing is lost."""

from typing import Any

import pytest
from click.testing import CliRunner, Result

from api.cli import main
from pipelines.registry import WORK
from pipelines.work import run_operation
from storage.dataset_conversion import convert_dataset
from storage.dataset_groups import create_group, delete_group
from storage.domain.errors import Conflict, InvalidConfig, NotFound
from storage.domain.keys import Principal
from storage.domain.paging import PageRequest
from storage.domain.reports import ReportColumn
from storage.domain.sheets import Sheet
from storage.drafts import create_draft
from storage.operations import list_waiting
from storage.reports import create_report
from storage.rows import list_rows
from storage.settings import Settings
from storage.store import Store
from storage.tables import get_table, list_tables
from storage.versions import list_versions
from tests.storage.test_dataset_views import FIRST, save

RIGHT = ReportColumn("right", "comparison", {"sources": ["q"], "target": "two"})


@pytest.fixture
def group(store: Store, who: Principal) -> int:
    return create_group(store, who, name="My Set").id


def rows(store: Store, who: Principal, sheet: Sheet) -> list[list[Any]]:
    place = {"table_id": sheet.table_id, "sheet_id": sheet.id}
    page = list_rows(store, who, **place, request=PageRequest(100)).page
    return [[cell.value for cell in row.cells] for row in page.items]


def test_a_version_becomes_a_sheet_that_outlives_it(store: Store, who: Principal, group: int) -> None:
    many = [{"q": str(n), "n": n} for n in range(1000)]
    dataset = save(store, who, group, many)
    made = convert_dataset(store, "default", dataset)
    delete_group(store, who, group)
    found = rows(store, who, made.sheet)
    assert found == [[str(n), n] for n in range(100)]
    table = get_table(store, who, made.sheet.table_id)
    assert (table.title, table.sheet_row_counts) == ("My Set", {made.sheet.id: 1000})
    versions = list_versions(
        store, who, table_id=table.id, sheet_id=made.sheet.id, request=PageRequest(10)
    ).items
    assert [version.version_number for version in versions] == [1, 2]
    assert made.operation is None


def test_a_reports_columns_become_those_of_the_sheet(store: Store, who: Principal, group: int) -> None:
    dataset = save(store, who, group, FIRST)
    report = create_report(store, who, dataset_group_id=group, name="r", columns=[RIGHT])
    made = convert_dataset(store, "default", dataset, report_id=report.id, title="Taken over")
    assert made.operation is not None
    for one in list_waiting(store):
        run_operation(WORK, store, one.no, one.attempt, "run", lambda _: None)
    assert rows(store, who, made.sheet) == [["one", 1, False], ["two", None, True]]


def test_what_cannot_be_taken_over_leaves_no_table(
    store: Store, who: Principal, stranger: Principal, group: int
) -> None:
    dataset = save(store, who, group, [{"other": 1}])
    report = create_report(
        store, who, dataset_group_id=create_group(store, who, name="x").id, name="r", columns=[RIGHT]
    )
    draft = create_draft(store, who, group_id=group).dataset_id
    before = sorted(store.data.path("sheets").rglob("*.parquet"))
    for wanted, given in (
        (InvalidConfig, ("default", dataset, report.id)),
        (NotFound, ("default", dataset, 99)),
        (NotFound, ("default", 99, None)),
        (NotFound, ("other", dataset, None)),
        (Conflict, ("default", draft, None)),
    ):
        with pytest.raises(wanted):
            convert_dataset(store, given[0], given[1], report_id=given[2])
    assert list_tables(store, who, request=PageRequest(10)).items == []
    assert sorted(store.data.path("sheets").rglob("*.parquet")) == before


def test_the_command_prints_where_the_sheet_is(
    store: Store, who: Principal, group: int, settings: Settings
) -> None:
    dataset = save(store, who, group, FIRST)

    def command(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["datasets", "to-sheet", "--home", str(settings.home), *arguments])

    done = command(str(dataset))
    assert done.exit_code == 0, done.output
    (table,) = list_tables(store, who, request=PageRequest(10)).items
    assert done.output.startswith(f"tables/{table.id}/sheets/")
    assert "2 rows" in done.output
    failed = command("99")
    assert failed.exit_code == 1
    assert "No dataset has the id 99" in failed.output
    for title in ("", "x" * 256):
        assert command(str(dataset), "--title", title).exit_code == 1
    assert len(list_tables(store, who, request=PageRequest(10)).items) == 1
