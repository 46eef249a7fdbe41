"""Versions over HTTP (E14, E15): saved, restored, listed, read whole, compared."""

from datetime import timedelta
from hashlib import sha256
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.testclient import TestClient

from storage.engine.rows.sheets import find_sheet_no
from storage.sheet_upkeep import compact_sheet
from storage.store import Store
from storage.sweep import forget_unnamed
from storage.workspaces import create_key
from tests.api.uploading import TABLES


@pytest.fixture
def sheet(client: TestClient) -> str:
    """The path of a sheet with Column A and one empty row."""
    table = client.post(TABLES, json={}).json()["table"]
    (sheet_id,) = table["sheet_row_counts"]
    return f"{TABLES}/{table['id']}/sheets/{sheet_id}"


def rows(client: TestClient, sheet: str, **query: Any) -> list[list[Any]]:
    page = client.get(f"{sheet}/rows", params=query).json()
    return [[cell["value"] for cell in row["cells"].values()] for row in page["data"]]


def edit(client: TestClient, sheet: str, row: int, value: Any) -> str:
    page = client.get(f"{sheet}/rows").json()
    cell = next(iter(page["data"][row]["cells"].values()))
    answer = client.patch(f"{sheet}/cells/{cell['id']}", json={"value": value})
    assert answer.status_code == 200, answer.text
    return str(cell["id"])


def save(client: TestClient, sheet: str, **body: Any) -> dict[str, Any]:
    answer = client.post(f"{sheet}/versions", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["version"]


def test_a_version_has_every_key_and_says_what_changed(client: TestClient, sheet: str) -> None:
    cell = edit(client, sheet, 0, "first")
    client.post(f"{sheet}/rows", json={"count": 2})
    version = save(client, sheet, name="Two more")
    assert list(version) == [
        "id", "sheet_id", "version_number", "name", "created_by", "created_at", "metadata", "deltas",
        "snapshot", "score", "score_configuration",
    ]  # fmt: skip
    assert (version["version_number"], version["name"], version["created_by"]) == (2, "Two more", "admin")
    assert version["metadata"] == {
        "row_count": 3, "column_count": 1, "source": "named", "source_version_id": None, "delta_count": 2,
    }  # fmt: skip
    read = client.get(f"{sheet}/versions/2").json()["version"]
    column_id = read["snapshot"]["columns"][0]["id"]
    assert read["deltas"] == [
        {"type": "rows_added", "ids": [], "before": {"row_count": 1}, "after": {"row_count": 3}},
        {"type": "cells_updated", "ids": [cell], "before": [""], "after": ["first"]},
    ]
    assert read["snapshot"]["sheet"]["title"] == "Sheet 1"
    assert read["snapshot"]["row_count"] == 3
    assert client.get(f"{sheet}/versions/{version['id']}").json()["version"] == read
    listed = client.get(f"{sheet}/versions").json()
    assert [one["version_number"] for one in listed["data"]] == [2, 1]
    assert list(listed["data"][0]) == list(version)
    assert listed["data"][0]["snapshot"] == {"row_count": 3, "column_count": 1}
    assert listed["data"][0]["deltas"][1] == {"type": "cells_updated", "ids": [cell]}
    assert column_id in client.get(f"{sheet}/rows").json()["data"][0]["cells"]


def test_a_restore_brings_rows_titles_and_cell_ids_back_as_a_new_version(
    client: TestClient, sheet: str
) -> None:
    edit(client, sheet, 0, "kept")
    cells = client.get(f"{sheet}/rows").json()["data"][0]["cells"]
    source = save(client, sheet, name="good")
    edit(client, sheet, 0, "spoilt")
    client.post(f"{sheet}/rows", json={"count": 3})
    client.patch(sheet, json={"title": "Renamed"})
    client.request("DELETE", f"{sheet}/rows", json={"row_indices": [0, 1]})
    restored = save(client, sheet, source_version_id=source["id"])
    assert (restored["version_number"], restored["metadata"]["source"]) == (4, "restored")
    assert restored["metadata"]["source_version_id"] == source["id"]
    assert restored["name"] == "Version 2 restored"
    assert {"type": "restored", "ids": [source["id"]], "before": {"version_number": 3},
            "after": {"version_number": 2}} in restored["deltas"]  # fmt: skip
    assert rows(client, sheet) == [["kept"]]
    assert client.get(f"{sheet}/rows").json()["data"][0]["cells"] == cells
    assert client.get(sheet).json()["sheet"]["title"] == "Sheet 1"
    assert save(client, sheet, source_version_id=source["id"], name="again")["name"] == "again"
    # numbers of rows go on: what is added now is no cell of the rows that went
    client.post(f"{sheet}/rows", json={})
    assert rows(client, sheet) == [["kept"], [""]]


@pytest.mark.parametrize("edits", [40, pytest.param(1_000, marks=pytest.mark.slow)])
def test_the_answer_of_a_version_is_the_same_to_the_byte_whatever_comes_later(
    client: TestClient, sheet: str, edits: int
) -> None:
    client.post(f"{sheet}/rows", json={"count": 5})
    compared = {"title": "Same", "type": "comparison", "config": {"sources": ["Column A"], "target": "x"}}
    operation = client.post(f"{sheet}/columns", json=compared).json()["operation_id"]
    for at in range(3):
        edit(client, sheet, at, f"kept {at}")
    saved = save(client, sheet, name="kept")
    number = saved["version_number"]
    paths = [
        f"{sheet}/rows?version_number={number}",
        f"{sheet}/rows?version_number={number}&order=desc&limit=2",
        f"{sheet}/versions/{number}",
        f"{sheet}/export?format=csv&version_number={number}",
    ]

    def hashes() -> list[str]:
        return [sha256(client.get(path).content).hexdigest() for path in paths]

    before = hashes()
    client.delete(f"{sheet}/operations/{operation}")
    for at in range(edits):
        edit(client, sheet, at % 3, f"later {at}")
        if at % 20 == 0:
            client.post(f"{sheet}/rows", json={"count": 1})
            client.request("DELETE", f"{sheet}/rows", json={"row_indices": [3]})
            save(client, sheet, name=f"later {at}")
    column = client.get(f"{sheet}/columns").json()["data"][1]["id"]
    client.patch(f"{sheet}/columns/{column}", json={"title": "Renamed"})
    client.delete(f"{sheet}/columns/{column}")
    store: Store = cast("Starlette", client.app).state.service.store
    with store.catalog.read() as connection:
        sheet_no = find_sheet_no(connection, UUID(sheet.rpartition("/")[2]))
    assert sheet_no is not None
    compact_sheet(store, sheet_no, everything=True)
    # a segment is noted first, and goes when it still is not named
    for _ in range(2):
        forget_unnamed(store, grace=timedelta(seconds=-5))
    assert hashes() == before
    save(client, sheet, source_version_id=saved["id"])
    assert hashes() == before


def test_a_restore_asks_and_writes_the_same_however_many_rows_there_are(
    client: TestClient, sheet: str
) -> None:
    store: Store = cast("Starlette", client.app).state.service.store

    def statements_of_a_restore() -> list[str]:
        source = save(client, sheet, name="source")
        edit(client, sheet, 0, "spoilt")
        save(client, sheet, name="spoilt")
        asked: list[str] = []

        def listen(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
            asked.append(statement)

        sa.event.listen(store.catalog.engine, "before_cursor_execute", listen)
        try:
            save(client, sheet, source_version_id=source["id"])
        finally:
            sa.event.remove(store.catalog.engine, "before_cursor_execute", listen)
        return asked

    few = statements_of_a_restore()
    for _ in range(20):
        client.post(f"{sheet}/rows", json={"count": 1_000})
    assert statements_of_a_restore() == few
    assert client.get(sheet).json()["sheet"]["row_count"] == 20_001


def test_a_sheet_that_is_written_is_not_restored(client: TestClient, sheet: str) -> None:
    source = save(client, sheet, name="good")
    body = {"file_name": "a.csv", "file_content_base64": "YQ0KMQ0K"}
    queued = client.post(f"{sheet}/imports/file", json=body).json()
    answer = client.post(f"{sheet}/versions", json={"source_version_id": source["id"]})
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    assert save(client, sheet, name="a name alone is taken")["version_number"] == 3
    client.delete(f"{sheet}/operations/{queued['operation_id']}")
    assert save(client, sheet, source_version_id=source["id"])["version_number"] == 4


@pytest.mark.parametrize(
    "body",
    [{}, {"name": ""}, {"name": "x" * 256}, {"name": 1}, {"source_version_id": "x"}, {"name": "a", "b": 1}],
)
def test_a_version_that_does_not_fit_is_refused(client: TestClient, sheet: str, body: Any) -> None:
    assert client.post(f"{sheet}/versions", json=body).status_code == 422
    assert client.get(sheet).json()["sheet"]["version_count"] == 1


def test_unknown_versions_are_unknown(client: TestClient, sheet: str) -> None:
    other = client.post(f"{sheet.rsplit('/', 1)[0]}", json={}).json()["sheet"]["id"]
    foreign = f"{sheet.rsplit('/', 1)[0]}/{other}"
    version = save(client, foreign, name="of another sheet")
    for wanted in ("0", "2", "9" * 18, "9" * 30, "x", str(uuid4()), version["id"], "-1", "1.0"):
        assert client.get(f"{sheet}/versions/{wanted}").status_code == 404, wanted
        assert client.get(f"{sheet}/versions/diff?from=1&to={wanted}").status_code == 404, wanted
    assert client.post(f"{sheet}/versions", json={"source_version_id": version["id"]}).status_code == 404
    assert client.get(f"{sheet}/versions/diff?from=1").status_code == 422


def test_versions_are_walked_both_ways(client: TestClient, sheet: str) -> None:
    for at in range(6):
        save(client, sheet, name=f"v{at}")
    for order in ("asc", "desc"):
        pages, cursor = [], None
        while True:
            query = {"limit": 3, "order": order} | ({"cursor": cursor} if cursor else {})
            page = client.get(f"{sheet}/versions", params=query).json()
            pages.append(page)
            assert (page["count"], page["pagination"]["limit"]) == (len(page["data"]), 3)
            if not page["pagination"]["has_more"]:
                break
            cursor = page["pagination"]["next_cursor"]
        numbers = [one["version_number"] for page in pages for one in page["data"]]
        assert numbers == sorted(range(1, 8), reverse=order == "desc")
        query = {"limit": 3, "order": order, "cursor": pages[-1]["pagination"]["prev_cursor"]}
        back = client.get(f"{sheet}/versions", params=query).json()
        assert back["data"] == pages[-2]["data"]


def test_a_cursor_of_another_list_is_refused(client: TestClient, sheet: str) -> None:
    for at in range(3):
        save(client, sheet, name=f"v{at}")
    client.post(f"{sheet}/rows", json={"count": 3})
    cursor = client.get(f"{sheet}/versions?limit=2").json()["pagination"]["next_cursor"]
    of_rows = client.get(f"{sheet}/rows?limit=2").json()["pagination"]["next_cursor"]
    other = client.post(f"{sheet.rsplit('/', 1)[0]}", json={}).json()["sheet"]["id"]
    for path, query in (
        (f"{sheet}/versions", {"cursor": cursor, "order": "asc"}),
        (f"{sheet}/versions", {"cursor": of_rows}),
        (f"{sheet}/versions", {"cursor": "x"}),
        (f"{sheet}/versions", {"cursor": cursor[:-1] + ("A" if cursor[-1] != "A" else "B")}),
        (f"{sheet.rsplit('/', 1)[0]}/{other}/versions", {"cursor": cursor}),
        (f"{sheet}/rows", {"cursor": cursor}),
    ):
        answer = client.get(path, params=query)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_cursor")
    for query in ({"limit": 0}, {"limit": 101}, {"sort": "name"}, {"order": "up"}):
        assert client.get(f"{sheet}/versions", params=query).status_code == 422


def test_two_versions_are_compared(client: TestClient, store: Store, sheet: str) -> None:
    client.post(f"{sheet}/rows", json={"count": 2})
    save(client, sheet, name="before")
    cell = edit(client, sheet, 1, {"a": 1})
    edit(client, sheet, 2, "x")
    edit(client, sheet, 2, "")
    client.request("DELETE", f"{sheet}/rows", json={"row_indices": [0]})
    client.post(f"{sheet}/rows", json={})
    save(client, sheet, name="after")
    diff = client.get(f"{sheet}/versions/diff?from=2&to=3").json()
    assert (diff["rows_added"], diff["rows_deleted"]) == (1, 1)
    (change,) = diff["cells"]["changes"]
    assert (change["cell_id"], change["row_index"]) == (cell, 0)
    assert (change["before"], change["after"], diff["cells"]["changed_count"]) == ("", {"a": 1}, 1)
    assert diff["columns"] == {"added": [], "removed": [], "changed": []}
    same = client.get(f"{sheet}/versions/diff?from=3&to=3").json()
    assert (same["cells"]["changed_count"], same["rows_added"]) == (0, 0)
    reader = {"X-API-KEY": create_key(store, scopes=["read"])[1]}
    assert client.get(f"{sheet}/versions/diff?from=1&to=3", headers=reader).status_code == 200
    assert client.post(f"{sheet}/versions", json={"name": "x"}, headers=reader).status_code == 403
