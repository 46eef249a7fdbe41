"""Tables and sheets changed, brought back, and imported into, over HTTP (E10 and companions)."""

import base64
from datetime import timedelta
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from storage.store import Store
from tests.api.uploading import TABLES, run_waiting


@pytest.fixture
def table(client: TestClient) -> str:
    return f"{TABLES}/{client.post(TABLES, json={}).json()['table']['id']}"


@pytest.fixture
def sheet(client: TestClient, table: str) -> str:
    return f"{table}/sheets/{client.get(f'{table}/sheets').json()['data'][0]['id']}"


def titles(client: TestClient, table: str) -> list[str]:
    found = client.get(f"{table}/sheets").json()["data"]
    assert [sheet["index"] for sheet in found] == list(range(len(found)))
    return [sheet["title"] for sheet in found]


def load(client: TestClient, store: Store, sheet: str, content: bytes, **more: Any) -> dict[str, Any]:
    """Import a file into a sheet and do its work; return the operation as it ended."""
    file = {"file_name": "more.csv", "file_content_base64": base64.b64encode(content).decode()}
    answer = client.post(f"{sheet}/imports/file", json=file | more)
    assert answer.status_code == 202, answer.text
    run_waiting(store)
    return client.get(answer.json()["status_url"]).json()["operation"]


def test_a_sheet_is_renamed_and_moved_and_the_others_make_room(client: TestClient, table: str) -> None:
    sheets = [client.post(f"{table}/sheets", json={"title": title}).json()["sheet"] for title in "bcd"]
    client.patch(f"{table}/sheets/{sheets[0]['id']}", json={"title": "B"})
    for place, expected in (
        (0, ["d", "Sheet 1", "B", "c"]),
        (2, ["Sheet 1", "B", "d", "c"]),
        (99, ["Sheet 1", "B", "c", "d"]),
    ):
        answer = client.patch(f"{table}/sheets/{sheets[2]['id']}", json={"index": place}).json()
        assert answer["sheet"]["index"] == min(place, 3)
        assert answer["version"] == answer["sheet"]["version_count"]
        assert titles(client, table) == expected
    counts = {one["title"]: one["version_count"] for one in client.get(f"{table}/sheets").json()["data"]}
    assert counts == {"Sheet 1": 1, "B": 2, "c": 1, "d": 4}
    version = client.get(f"{table}/sheets/{sheets[2]['id']}/versions/4").json()["version"]
    assert version["deltas"] == [
        {
            "type": "sheet_updated",
            "ids": [sheets[2]["id"]],
            "before": {"title": "d", "index": 2},
            "after": {"title": "d", "index": 3},
        }
    ]


def test_a_change_of_nothing_makes_no_version(client: TestClient, sheet: str) -> None:
    for body in (
        {},
        {"title": None, "index": None},
        {"title": "Sheet 1", "index": 0},
        {"expected_row_count": 5, "eval_run_status": "x"},
    ):
        answer = client.patch(sheet, json=body)
        assert (answer.status_code, answer.json()["version"]) == (200, 1), answer.text


@pytest.mark.parametrize(
    "body", [{"index": -1}, {"title": ""}, {"title": "x" * 256}, {"index": "1"}, {"index": 10**30}, {"x": 1}]
)
def test_a_sheet_is_not_changed_to_what_does_not_fit(client: TestClient, sheet: str, body: Any) -> None:
    answer = client.patch(sheet, json=body)
    assert (answer.status_code, answer.json()["error"]) == (422, "validation_error")
    assert client.get(sheet).json()["sheet"]["version_count"] == 1


def test_a_table_is_renamed_and_moved(client: TestClient, table: str) -> None:
    folder = client.post("/api/public/v2/folders", json={"name": "Support"}).json()["id"]
    moved = client.patch(table, json={"title": "Answers", "folder_id": folder}).json()["table"]
    assert (moved["title"], moved["folder_id"]) == ("Answers", folder)
    assert client.patch(table, json={"title": "Again"}).json()["table"]["folder_id"] == folder
    assert client.patch(table, json={"folder_id": None}).json()["table"]["folder_id"] is None
    assert client.patch(table, json={"folder_id": 99}).status_code == 404
    for body in ({"title": ""}, {"title": "x" * 256}, {"folder_id": "1"}, {"other": 1}):
        assert client.patch(table, json=body).status_code == 422
    assert client.get(table).json()["table"]["title"] == "Again"


def test_a_deleted_sheet_comes_back_to_its_place_as_it_was(
    client: TestClient, table: str, sheet: str
) -> None:
    client.post(f"{sheet}/rows", json={"count": 2})
    for title in "bc":
        client.post(f"{table}/sheets", json={"title": title})
    assert client.post(f"{sheet}/undelete").status_code == 409
    before = client.get(f"{sheet}/rows").json()["data"]
    client.delete(sheet)
    assert titles(client, table) == ["b", "c"]
    for path in (sheet, f"{sheet}/rows", f"{sheet}/versions"):
        assert client.get(path).status_code == 404
    assert client.post(f"{sheet}/undelete").json()["sheet"]["index"] == 0
    assert titles(client, table) == ["Sheet 1", "b", "c"]
    assert client.get(f"{sheet}/rows").json()["data"] == before


def test_a_deleted_table_comes_back_with_the_sheets_that_it_had(client: TestClient, table: str) -> None:
    gone = client.post(f"{table}/sheets", json={"title": "gone"}).json()["sheet"]["id"]
    client.delete(f"{table}/sheets/{gone}")
    client.delete(table)
    assert client.get(table).status_code == 404
    assert client.post(f"{table}/sheets/{gone}/undelete").status_code == 404
    assert client.post(f"{table}/undelete").json()["table"]["sheet_count"] == 1
    assert titles(client, table) == ["Sheet 1"]
    assert client.post(f"{table}/undelete").status_code == 409
    assert client.post(f"{table}/sheets/{gone}/undelete").status_code == 200


def test_after_seven_days_nothing_comes_back(
    client: TestClient, table: str, sheet: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = cast("Starlette", client.app).state.service.store
    client.delete(sheet)
    for days, status in ((6.9, 200), (7.1, 404)):
        client.delete(sheet)
        client.delete(table)
        later = store.now() + timedelta(days=days)
        with monkeypatch.context() as clock:
            for module in ("storage.tables", "storage.sheet_changes"):
                clock.setattr(f"{module}.UNDELETE_FOR", timedelta(days=7) - (later - store.now()))
            assert client.post(f"{table}/undelete").status_code == status
            if status == 200:
                assert client.post(f"{sheet}/undelete").status_code == 200


def test_a_file_is_imported_into_a_sheet_by_title(client: TestClient, store: Store, sheet: str) -> None:
    first = load(client, store, sheet, b"a,b\n1,2\n")
    assert (first["status"], first["rows_added"], first["row_count"]) == ("succeeded", 1, 1)
    second = load(client, store, sheet, b"c,a\nx,3\ny\n")
    assert (second["rows_added"], second["row_count"]) == (2, 3)
    page = client.get(f"{sheet}/rows").json()
    assert [column["title"] for column in page["columns"]] == ["a", "b", "c"]
    found = [[cell["value"] for cell in row["cells"].values()] for row in page["data"]]
    assert found == [["1", "2", None], ["3", None, "x"], ["", None, "y"]]
    assert client.get(sheet).json()["sheet"]["version_count"] == 3
    deltas = client.get(f"{sheet}/versions/3").json()["version"]["deltas"]
    assert [delta["type"] for delta in deltas] == ["column_added", "rows_added"]


def test_an_edited_default_sheet_is_not_replaced(client: TestClient, store: Store, sheet: str) -> None:
    (cell,) = client.get(f"{sheet}/rows").json()["data"][0]["cells"].values()
    client.patch(f"{sheet}/cells/{cell['id']}", json={"display_value": "mine"})
    load(client, store, sheet, b"a\n1\n")
    page = client.get(f"{sheet}/rows").json()
    assert [column["title"] for column in page["columns"]] == ["Column A", "a"]
    assert page["row_count"] == 2


def test_a_default_sheet_whose_row_was_replaced_is_not_untouched(
    client: TestClient, store: Store, sheet: str
) -> None:
    client.post(f"{sheet}/rows", json={})
    client.request("DELETE", f"{sheet}/rows", json={"row_indices": [0]})
    load(client, store, sheet, b"a\n1\n")
    assert client.get(f"{sheet}/rows").json()["row_count"] == 2


def test_one_import_at_a_time_and_a_repeat_starts_nothing(
    client: TestClient, store: Store, sheet: str
) -> None:
    body = {"file_name": "a.csv", "file_content_base64": "YQ0KMQ0K", "operation_id": "mine"}
    first = client.post(f"{sheet}/imports/file", json=body)
    assert list(first.json()) == ["success", "message", "operation_id", "operation", "status_url"]
    assert client.post(f"{sheet}/imports/file", json=body).json() == first.json()
    other = client.post(f"{sheet}/imports/file", json=body | {"operation_id": "other"})
    assert (other.status_code, other.json()["error"]) == (409, "import_in_progress")
    differs = client.post(f"{sheet}/imports/file", json=body | {"file_name": "b.csv"})
    assert (differs.status_code, differs.json()["error"]) == (409, "conflict")
    # what is written meanwhile is kept, and the import joins it
    client.post(f"{sheet}/rows", json={"count": 2})
    run_waiting(store)
    assert client.get(sheet).json()["sheet"]["row_count"] == 4


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"file_name": "a.xlsx", "file_content_base64": "QQ=="}, 422),
        ({"file_name": "a.csv", "file_content_base64": "?"}, 400),
        ({"file_name": "a.csv", "file_content_base64": "QQ==", "more": 1}, 422),
        ({"file_name": "a.csv", "file_content_base64": "QQ==", "operation_id": "a b"}, 422),
    ],
)
def test_a_file_that_does_not_fit_is_refused(client: TestClient, sheet: str, body: Any, status: int) -> None:
    answer = client.post(f"{sheet}/imports/file", json=body)
    assert (answer.status_code, answer.json()["success"]) == (status, False)


def test_rows_and_cells_over_http(client: TestClient, sheet: str) -> None:
    added = client.post(f"{sheet}/rows", json={"count": 3})
    assert (added.status_code, added.json()["row_indices"], added.json()["row_count"]) == (201, [1, 2, 3], 4)
    assert client.post(f"{sheet}/rows").json()["row_indices"] == [4]
    column = client.get(f"{sheet}/columns").json()["data"][0]["id"]
    values = [{column: "x"}, {column: {"a": 1}}]
    assert client.post(f"{sheet}/rows", json={"values": values}).json()["row_indices"] == [5, 6]
    left = client.request("DELETE", f"{sheet}/rows", json={"row_indices": [0, 1, 2, 3, 4]})
    assert (left.status_code, left.json()["row_count"]) == (200, 2)
    page = client.get(f"{sheet}/rows").json()
    cells = [row["cells"][column] for row in page["data"]]
    assert [(cell["value"], cell["display_value"]) for cell in cells] == [("x", "x"), ({"a": 1}, '{"a":1}')]
    path = f"{sheet}/cells/{cells[0]['id']}"
    answer = client.patch(path, json={"value": [1, None]}).json()
    assert (answer["stale_count"], answer["version"]) == (0, 1)
    assert answer["cell"] == client.get(path).json()["cell"]
    assert answer["cell"]["display_value"] == "[1,null]"
    assert client.patch(path, json={"value": None}).json()["cell"]["display_value"] is None
    assert client.patch(path, json={"display_value": "shown"}).json()["cell"]["value"] == "shown"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "rows", {"count": 1001}, 422),
        ("POST", "rows", {"count": 0}, 422),
        ("POST", "rows", {"count": "1"}, 422),
        ("POST", "rows", {"values": [{}] * 1001}, 422),
        ("POST", "rows", {"values": [{"x": 1}]}, 422),
        ("POST", "rows", {"values": [{"2f1f0c9e-0000-4000-8000-000000000000": 1}]}, 422),
        ("DELETE", "rows", {"row_indices": []}, 422),
        ("DELETE", "rows", {"row_indices": [7]}, 422),
        ("DELETE", "rows", {"row_indices": [-1]}, 422),
        ("DELETE", "rows", {"row_indices": list(range(1001))}, 422),
        ("DELETE", "rows", None, 422),
        ("PATCH", "cells", {}, 422),
        ("PATCH", "cells", {"value": 1, "display_value": "1"}, 422),
        ("PATCH", "cells", {"display_value": 1}, 422),
        ("PATCH", "cells", {"value": "x" * (8 * 1024 * 1024 + 1)}, 422),
        ("PATCH", "cells", {"value": "x" * (10 * 1024 * 1024)}, 413),
    ],
)
def test_rows_and_cells_that_do_not_fit_are_refused(
    client: TestClient, sheet: str, method: str, path: str, body: Any, status: int
) -> None:
    before = client.get(f"{sheet}/rows").json()
    if path == "cells":
        (cell,) = before["data"][0]["cells"].values()
        path = f"cells/{cell['id']}"
    answer = client.request(method, f"{sheet}/{path}", json=body)
    assert (answer.status_code, answer.json()["success"]) == (status, False), answer.text
    assert client.get(f"{sheet}/rows").json() == before
