"""Tables, sheets, columns, rows and cells over HTTP."""

from typing import Any
from uuid import UUID

import pytest
from starlette.testclient import TestClient

from api.app import Application
from storage.domain.keys import Principal
from storage.sheets import get_sheet
from storage.store import Store
from storage.workspaces import find_key
from tests.conftest import KEY
from tests.importing import import_rows, imported_sheet, start

TABLES = "/api/public/v2/tables"
ROWS = [["Ann", 7, {"a": [1, 1.5]}], ["Bob", None, None], ["", -1, True]]


@pytest.fixture
def who(store: Store) -> Principal:
    facts = find_key(store, KEY)
    assert facts is not None
    return facts.principal


@pytest.fixture
def table(client: TestClient) -> dict[str, Any]:
    answer = client.post(TABLES, json={})
    assert answer.status_code == 201
    return answer.json()["table"]


@pytest.fixture
def sheet_path(store: Store, who: Principal, table: dict[str, Any]) -> str:
    """The path of a sheet with three imported rows."""
    sheet = imported_sheet(store, who, UUID(table["id"]), ["name", "n", "x"], ROWS)
    return f"{TABLES}/{table['id']}/sheets/{sheet.id}"


def test_a_table_is_born_with_a_sheet_a_column_and_an_empty_row(client: TestClient) -> None:
    made = client.post(TABLES).json()
    assert made["success"] is True
    assert made["table"]["title"] == "Untitled Table"
    assert made["table"]["sheet_count"] == 1
    ((sheet_id, count),) = made["table"]["sheet_row_counts"].items()
    assert count == 1
    path = f"{TABLES}/{made['table']['id']}/sheets/{sheet_id}"
    sheet = client.get(path).json()["sheet"]
    assert (sheet["title"], sheet["index"], sheet["row_count"], sheet["version_count"]) == (
        "Sheet 1",
        0,
        1,
        1,
    )
    page = client.get(f"{path}/rows").json()
    (column,) = page["columns"]
    assert (column["title"], column["type"]) == ("Column A", "text")
    (row,) = page["data"]
    cell = row["cells"][column["id"]]
    assert (cell["value"], cell["display_value"], cell["status"]) == ("", "", "completed")


def test_titles_are_made_up_or_kept(client: TestClient) -> None:
    made = [client.post(TABLES, json=body).json()["table"]["title"] for body in ({}, {"title": "T"}, {}, {})]
    assert made == ["Untitled Table", "T", "Untitled Table 2", "Untitled Table 3"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"title": ""}, 422),
        ({"title": "x" * 256}, 422),
        ({"title": 7}, 422),
        ({"folder_id": 99}, 404),
        ({"workspace_id": 99}, 400),
        ({"colour": "red"}, 422),
        ([], 422),
    ],
)
def test_a_table_that_does_not_fit_is_refused(client: TestClient, body: Any, status: int) -> None:
    answer = client.post(TABLES, json=body)
    assert answer.status_code == status
    assert answer.json()["success"] is False
    assert client.get(TABLES).json()["count"] == 0


def test_every_value_comes_back_as_the_json_value_it_was(client: TestClient, sheet_path: str) -> None:
    page = client.get(f"{sheet_path}/rows").json()
    ids = [column["id"] for column in page["columns"]]
    values = [[row["cells"][one]["value"] for one in ids] for row in page["data"]]
    assert values == ROWS
    assert [type(row[2]) for row in values] == [dict, type(None), bool]
    shown = [row["cells"][ids[2]]["display_value"] for row in page["data"]]
    assert shown == ['{"a":[1,1.5]}', None, "true"]
    assert (page["row_count"], page["version"], page["count"]) == (3, 2, 3)
    assert [row["row_index"] for row in page["data"]] == [0, 1, 2]


def test_a_cell_is_read_by_its_id_and_carries_every_field(client: TestClient, sheet_path: str) -> None:
    page = client.get(f"{sheet_path}/rows").json()
    for row in page["data"]:
        for cell in row["cells"].values():
            answer = client.get(f"{sheet_path}/cells/{cell['id']}")
            assert answer.status_code == 200
            assert answer.json() == {"success": True, "cell": cell}
    assert set(cell) == {
        "id", "sheet_id", "column_id", "row_index", "display_value", "value", "error", "input_hash",
        "updated_at", "request_metrics", "execution_id", "last_computed_version", "error_message",
        "status", "cached",
    }  # fmt: skip


def test_rows_are_walked_both_ways_by_cursor(client: TestClient, sheet_path: str) -> None:
    def page(**query: Any) -> dict[str, Any]:
        return client.get(f"{sheet_path}/rows", params=query).json()

    def places(found: dict[str, Any]) -> list[int]:
        return [row["row_index"] for row in found["data"]]

    first = page(limit=2)
    assert (places(first), first["pagination"]["prev_cursor"]) == ([0, 1], None)
    second = page(limit=2, cursor=first["pagination"]["next_cursor"])
    assert (places(second), second["pagination"]["has_more"]) == ([2], False)
    assert places(page(limit=2, cursor=second["pagination"]["prev_cursor"])) == [0, 1]
    assert places(page(order="desc", limit=2)) == [2, 1]
    wrong = client.get(
        f"{sheet_path}/rows", params={"order": "desc", "cursor": first["pagination"]["next_cursor"]}
    )
    assert (wrong.status_code, wrong.json()["error"]) == (400, "invalid_cursor")


def test_columns_are_chosen_and_versions_read_as_they_were(client: TestClient, sheet_path: str) -> None:
    columns = client.get(f"{sheet_path}/columns").json()["data"]
    assert [column["title"] for column in columns] == ["name", "n", "x"]
    chosen = f"{columns[2]['id']},{columns[0]['id']}"
    page = client.get(f"{sheet_path}/rows", params={"column_ids": chosen}).json()
    assert [column["title"] for column in page["columns"]] == ["name", "x"]
    before = client.get(f"{sheet_path}/rows", params={"version_number": 1}).json()
    assert (before["data"], before["columns"], before["row_count"], before["version"]) == ([], [], 0, 1)
    for query, status in [
        ({"version_number": 9}, 404),
        ({"column_ids": page["data"][0]["cells"][columns[0]["id"]]["id"]}, 404),
        ({"column_ids": "x"}, 422),
        ({"limit": 1001}, 422),
        ({"limit": 0}, 422),
        ({"order": "up"}, 422),
        ({"cursor": "e30"}, 400),
    ]:
        assert client.get(f"{sheet_path}/rows", params=query).status_code == status, query


def test_lists_of_tables_and_sheets_filter_and_turn_pages(
    client: TestClient, store: Store, who: Principal, table: dict[str, Any], sheet_path: str
) -> None:
    for title in ("Alpha", "alphabet", "Beta_1", "BetaX1"):
        client.post(TABLES, json={"title": title})
    found = client.get(TABLES, params={"name": "ALPHA", "order": "asc"}).json()
    assert [one["title"] for one in found["data"]] == ["Alpha", "alphabet"]
    assert found["filters"] == {"name": "ALPHA"}
    assert client.get(TABLES, params={"name": "a_1"}).json()["count"] == 1
    first = client.get(TABLES, params={"limit": 2}).json()
    assert [one["title"] for one in first["data"]] == ["BetaX1", "Beta_1"]
    second = client.get(TABLES, params={"limit": 2, "cursor": first["pagination"]["next_cursor"]}).json()
    assert [one["title"] for one in second["data"]] == ["alphabet", "Alpha"]
    sheets = client.get(f"{TABLES}/{table['id']}/sheets", params={"limit": 1}).json()
    assert [one["title"] for one in sheets["data"]] == ["Sheet 1"]
    cursor = sheets["pagination"]["next_cursor"]
    wrong = client.get(TABLES, params={"cursor": cursor})
    assert (wrong.status_code, wrong.json()["error"]) == (400, "invalid_cursor")
    sheets = client.get(f"{TABLES}/{table['id']}/sheets", params={"limit": 1, "cursor": cursor}).json()
    assert [(one["title"], one["index"]) for one in sheets["data"]] == [("People", 1)]


def test_an_import_is_polled_and_cancelled(
    client: TestClient, store: Store, who: Principal, table: dict[str, Any]
) -> None:
    started = start(store, who, UUID(table["id"]), operation_id="mine")
    poll = f"{TABLES}/{table['id']}/sheets/operations/mine"
    operation = client.get(poll).json()["operation"]
    assert (operation["status"], operation["source"], operation["file_name"]) == (
        "queued",
        "file",
        "people.csv",
    )
    cancel = f"{TABLES}/{table['id']}/sheets/{started.sheet.id}/operations/mine"
    assert client.delete(cancel).json()["cancelled_cell_count"] == 0
    operation = client.get(poll).json()["operation"]
    assert (operation["status"], operation["error_message"]) == ("failed", "cancelled")
    assert client.delete(cancel).status_code == 409
    again = start(store, who, UUID(table["id"]), started.sheet.id)
    import_rows(store, again.operation, ["a"], [["1"]])
    assert get_sheet(store, who, table_id=UUID(table["id"]), sheet_id=started.sheet.id).row_count == 1
    assert client.delete(cancel.replace("mine", again.operation.id)).status_code == 409


def test_deleted_sheets_and_tables_are_gone_from_every_read(
    client: TestClient, table: dict[str, Any], sheet_path: str
) -> None:
    cell = next(iter(client.get(f"{sheet_path}/rows").json()["data"][0]["cells"].values()))
    assert client.delete(sheet_path).json()["success"] is True
    for path in ("", "/rows", "/columns", f"/cells/{cell['id']}"):
        assert client.get(sheet_path + path).status_code == 404
    assert client.get(f"{TABLES}/{table['id']}").json()["table"]["sheet_count"] == 1
    assert client.delete(f"{TABLES}/{table['id']}").status_code == 200
    assert client.get(f"{TABLES}/{table['id']}").status_code == 404
    assert client.get(TABLES).json()["data"] == []


def test_forged_and_misplaced_cell_ids_are_unknown(client: TestClient, sheet_path: str) -> None:
    cell = next(iter(client.get(f"{sheet_path}/rows").json()["data"][0]["cells"].values()))
    forged = cell["id"][:-1] + ("0" if cell["id"][-1] != "0" else "1")
    other = client.post(TABLES).json()["table"]
    ((sheet_id, _),) = other["sheet_row_counts"].items()
    for path in (
        f"{sheet_path}/cells/{forged}",
        f"{sheet_path}/cells/{cell['column_id']}",
        f"{sheet_path}/cells/none",
        f"{TABLES}/{other['id']}/sheets/{sheet_id}/cells/{cell['id']}",
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


def test_a_page_that_would_not_fit_in_memory_holds_fewer_rows(
    client: TestClient, store: Store, who: Principal, table: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    long = [[f"{n}" * 10_000, "x"] for n in range(8)]
    sheet = imported_sheet(store, who, UUID(table["id"]), ["long", "short"], long)
    path = f"{TABLES}/{table['id']}/sheets/{sheet.id}/rows"
    for name, most in (("MOST_CELLS", 6), ("MOST_BYTES", 40_000)):
        monkeypatch.setattr(f"storage.rows.{name}", most)
        for order in ("asc", "desc"):
            seen: list[int] = []
            cursor = None
            while cursor or not seen:
                query = {"limit": 8, "order": order} | ({"cursor": cursor} if cursor else {})
                page = client.get(path, params=query).json()
                assert page["count"] <= 3
                seen += [row["row_index"] for row in page["data"]]
                cursor = page["pagination"]["next_cursor"]
            assert seen == sorted(range(8), reverse=order == "desc")
        monkeypatch.undo()


def test_of_large_pages_two_are_read_at_once_and_small_ones_do_not_wait(
    client: TestClient, application: Application, store: Store, who: Principal, table: dict[str, Any]
) -> None:
    sheet = imported_sheet(store, who, UUID(table["id"]), ["long", "short"], [["x" * 2_000_000, "y"]])
    path = f"{TABLES}/{table['id']}/sheets/{sheet.id}/rows"
    (_, short) = client.get(path).json()["data"][0]["cells"]
    pages = application.state.service.store.large_pages
    pages.wait_s = 0.05
    with pages.turn():
        assert client.get(path).status_code == 200
        with pages.turn():
            refused = client.get(path)
            assert (refused.status_code, refused.json()["error"]) == (503, "unavailable")
            assert int(refused.headers["retry-after"]) > 0
            assert client.get(path, params={"column_ids": short}).status_code == 200
    assert client.get(path).status_code == 200


@pytest.mark.parametrize("lost", [False, True])
def test_a_sheet_whose_file_is_damaged_or_lost_is_unavailable(
    client: TestClient, store: Store, who: Principal, table: dict[str, Any], lost: bool
) -> None:
    sheet = imported_sheet(store, who, UUID(table["id"]), ["a"], [["x"], ["y"]])
    (file,) = store.data.path(f"sheets/{sheet.id}").iterdir()
    if lost:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:20])
    answer = client.get(f"{TABLES}/{table['id']}/sheets/{sheet.id}/rows")
    assert (answer.status_code, answer.json()["error"]) == (503, "unavailable")
    assert "sheet_segments_are_whole" in answer.json()["message"]
