"""A sheet as a file: over HTTP and from the command line, now and as a version had it."""

import csv
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from api.cli import main
from storage.domain.keys import Principal
from storage.domain.sheets import Sheet
from storage.settings import Settings
from storage.sheet_export import plan_sheet_export
from storage.store import Store
from storage.tables import create_table
from storage.workspaces import find_key
from tests.api.uploading import TABLES
from tests.conftest import KEY
from tests.importing import imported_sheet

ROWS = [["Ann", 7, {"a": 1}, 0.5], ['q"o,\nt', None, "t", None], ["", -1, None, 2.0]]


@pytest.fixture
def who(store: Store) -> Principal:
    facts = find_key(store, KEY)
    assert facts is not None
    return facts.principal


@pytest.fixture
def sheet(store: Store, who: Principal) -> Sheet:
    table = create_table(store, who, title="Söme/table")
    return imported_sheet(store, who, table.id, ["näme", "n", "x", "d"], ROWS)


def path(sheet: Sheet) -> str:
    return f"{TABLES}/{sheet.table_id}/sheets/{sheet.id}"


def test_every_format_holds_the_sheet(client: TestClient, sheet: Sheet) -> None:
    lines = client.get(f"{path(sheet)}/export?format=jsonl").text.splitlines()
    assert [list(json.loads(line).values()) for line in lines] == ROWS
    assert list(json.loads(lines[0])) == ["näme", "n", "x", "d"]
    answer = client.get(f"{path(sheet)}/export")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''People.csv"
    assert list(csv.reader(io.StringIO(answer.text))) == [
        ["näme", "n", "x", "d"],
        ["Ann", "7", '{"a":1}', "0.5"],
        ['q"o,\nt', "", "t", ""],
        ["", "-1", "", "2.0"],
    ]
    table = pq.read_table(io.BytesIO(client.get(f"{path(sheet)}/export?format=parquet").content))
    assert list(map(str, table.schema.types)) == ["string", "int64", "string", "double"]
    assert [list(row.values()) for row in table.to_pylist()] == [
        ["Ann", 7, '{"a":1}', 0.5],
        ['q"o,\nt', None, '"t"', None],
        ["", -1, None, 2.0],
    ]


def test_lines_of_csv_are_taken_apart_as_they_were_put_together(
    client: TestClient, store: Store, who: Principal
) -> None:
    cells = ["a\rb", "c\nd", "e\r\nf", ' "g" ', "\r", "h,i"]
    sheet = imported_sheet(store, who, create_table(store, who).id, ["t\ri", "x"], [[c, "y"] for c in cells])
    text = client.get(f"{path(sheet)}/export?format=csv").text
    with io.StringIO(text, newline="") as file:
        assert list(csv.reader(file)) == [["t\ri", "x"], *([cell, "y"] for cell in cells)]


def test_edits_are_in_it_and_versions_are_as_they_were(client: TestClient, sheet: Sheet) -> None:
    (cell, *_) = client.get(f"{path(sheet)}/rows").json()["data"][0]["cells"].values()
    client.patch(f"{path(sheet)}/cells/{cell['id']}", json={"value": 5})
    client.post(f"{path(sheet)}/rows", json={})

    def lines(**query: Any) -> list[Any]:
        text = client.get(f"{path(sheet)}/export", params={"format": "jsonl"} | query).text
        return [list(json.loads(line).values()) for line in text.splitlines()]

    assert lines() == [[5, *ROWS[0][1:]], *ROWS[1:], ["", "", "", ""]]
    assert lines(version_number=2) == ROWS
    assert lines(version_number=1) == []
    table = pq.read_table(io.BytesIO(client.get(f"{path(sheet)}/export?format=parquet").content))
    assert table.column("näme").to_pylist() == ["5", '"q\\"o,\\nt"', '""', '""']


def test_what_cannot_be_exported_is_refused(client: TestClient, sheet: Sheet) -> None:
    for query, status in (("format=xlsx", 422), ("version_number=9", 404), ("version_number=0", 422)):
        assert client.get(f"{path(sheet)}/export?{query}").status_code == status
    for kind in ("csv", "jsonl", "parquet"):
        bare = client.get(f"{path(sheet)}/export?format={kind}&version_number=1")
        assert bare.status_code == 200


def test_memory_does_not_grow_with_the_sheet(store: Store, who: Principal) -> None:
    rows = [[f"{at}" * 200] for at in range(20_000)]
    sheet = imported_sheet(store, who, create_table(store, who).id, ["a"], rows)
    found = plan_sheet_export(store, who, table_id=sheet.table_id, sheet_id=sheet.id)
    for kind in ("csv", "jsonl", "parquet"):
        tracemalloc.start()
        size = sum(len(piece) for piece in found.pieces(kind))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert size > 1000
        assert peak < 14 * 1024 * 1024, kind


def test_the_command_line_names_a_sheet_by_titles_or_ids(
    settings: Settings, store: Store, who: Principal, sheet: Sheet, tmp_path: Path
) -> None:
    def export(*arguments: str) -> Any:
        return CliRunner().invoke(main, ["export", "--home", str(settings.home), *arguments])

    done = export("Söme/table/People", "--format", "csv")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("näme,n,x,d\nAnn,7,")
    assert done.stderr == "3 rows exported\n"
    out = tmp_path / "people.parquet"
    assert export(f"{sheet.table_id}/{sheet.id}", "--output", str(out)).exit_code == 0
    assert pq.read_table(out).num_rows == 3
    assert export("Söme/table/People", "--version", "1").stdout == ""
    for wrong in (("nothing",), ("Söme/table/Nobody",), ("Söme/table/People", "--version", "7")):
        assert export(*wrong).exit_code != 0
    imported_sheet(store, who, sheet.table_id, ["a"], [])
    twice = export("Söme/table/People")
    assert twice.exit_code == 1
    assert str(sheet.id) in twice.stderr
