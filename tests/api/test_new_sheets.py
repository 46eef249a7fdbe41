"""E8: a file becomes a sheet once, a refused one leaves nothing, a repeat answers as the first call did."""

import base64
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from starlette.testclient import TestClient

from storage.settings import Settings
from storage.store import Store
from tests.api.uploading import TABLES, file_body, import_file, make_table, run_waiting

SOURCE = {"type": "file", "file_name": "a.csv", "file_content_base64": "QQ=="}
OPEN_QUOTE = "A quote opens in the record that begins on line 20002 and is never closed"


def spooled(settings: Settings) -> list[Path]:
    folder = settings.root / "data" / "spool"
    return sorted(folder.iterdir()) if folder.exists() else []


def segment_files(settings: Settings) -> list[Path]:
    return [
        path for path in (settings.root / "data").rglob("*") if path.is_file() and "spool" not in path.parts
    ]


def sheet_count(client: TestClient, sheets: str) -> int:
    return len(client.get(sheets).json()["data"])


def test_a_csv_file_becomes_a_sheet(client: TestClient, store: Store) -> None:
    done = import_file(client, store, b"question,answer\nWhat?,42\n\nWhy?\n", "facts.csv")
    assert (done["status"], done["progress"], done["rows_added"]) == ("succeeded", 100, 2)
    assert (done["file_name"], done["message"]) == ("facts.csv", "2 rows imported from facts.csv")
    assert done["titles"] == ["question", "answer"]
    assert done["rows"] == [["What?", "42"], ["Why?", ""]]


def test_a_json_file_becomes_a_sheet_with_its_types(client: TestClient, store: Store) -> None:
    content = json.dumps([{"a": 1, "b": "x"}, {"b": None, "c": {"d": [True]}}, {"a": 2.5, "c": "t"}]).encode()
    done = import_file(client, store, content, "rows.JSON")
    assert done["titles"] == ["a", "b", "c"]
    assert done["rows"] == [[1, "x", None], [None, None, {"d": [True]}], [2.5, None, "t"]]


def test_the_answer_has_exactly_the_fields_of_the_contract(client: TestClient, settings: Settings) -> None:
    sheets = make_table(client)
    answer = client.post(sheets, json=file_body(b"a\n1\n", "my data.csv"))
    assert answer.status_code == 202
    body = answer.json()
    assert list(body) == ["success", "message", "operation_id", "operation", "sheet"]
    operation, sheet = body["operation"], body["sheet"]
    assert body["success"] is True
    assert UUID(body["operation_id"])
    assert operation == {
        "operation_id": body["operation_id"],
        "status": "queued",
        "source": "file",
        "progress": 0,
        "message": "Queued",
        "rows_added": 0,
        "row_count": 0,
        "file_name": "my data.csv",
        "error_message": None,
        "created_at": operation["created_at"],
        "updated_at": operation["created_at"],
    }
    assert (sheet["title"], sheet["index"], sheet["row_count"], sheet["version_count"]) == (
        "my data.csv",
        1,
        0,
        1,
    )
    (upload,) = spooled(settings)
    assert upload.read_bytes() == b"a\n1\n"


@pytest.mark.parametrize("body", [{}, {"source": None}, {"title": "Notes", "index": 0}])
def test_without_a_source_the_sheet_is_blank(client: TestClient, body: dict[str, Any]) -> None:
    sheets = make_table(client)
    answer = client.post(sheets, json=body)
    assert answer.status_code == 201
    made = answer.json()
    assert (made["operation"], made["operation_id"]) == (None, None)
    assert made["sheet"]["title"] == body.get("title", "Sheet 2")
    assert made["sheet"]["index"] == body.get("index", 1)
    assert made["sheet"]["row_count"] == 1


def test_a_blank_sheet_takes_no_operation_id(client: TestClient) -> None:
    sheets = make_table(client)
    answer = client.post(sheets, json={"operation_id": "x"})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["body", "operation_id"]
    assert sheet_count(client, sheets) == 1


def test_index_places_the_sheet_and_beyond_the_end_is_the_end(client: TestClient) -> None:
    sheets = make_table(client)
    first = client.post(sheets, json=file_body(b"a\n", title="first", index=0)).json()["sheet"]
    last = client.post(sheets, json=file_body(b"a\n", title="last", index=99)).json()["sheet"]
    assert (first["index"], last["index"]) == (0, 2)
    titles = [sheet["title"] for sheet in client.get(sheets).json()["data"]]
    assert titles == ["first", "Sheet 1", "last"]


@pytest.mark.parametrize(
    ("change", "loc"),
    [
        ({"index": -1}, "index"),
        ({"index": "1"}, "index"),
        ({"index": 2**63}, "index"),
        ({"title": ""}, "title"),
        ({"title": "x" * 256}, "title"),
        ({"operation_id": "a b"}, "operation_id"),
        ({"operation_id": ""}, "operation_id"),
        ({"operation_id": "x" * 129}, "operation_id"),
        ({"operation_id": "x\n"}, "operation_id"),
        ({"extra": 1}, "extra"),
        ({"source": {}}, "source"),
        ({"source": []}, "source"),
        ({"source": {"type": "file", "file_name": "a.csv"}}, "source.file_content_base64"),
        ({"source": {"type": "file", "file_content_base64": "QQ=="}}, "source.file_name"),
        ({"source": SOURCE | {"file_content_base64": 1}}, "source.file_content_base64"),
        ({"source": SOURCE | {"file_name": ""}}, "source.file_name"),
        ({"source": SOURCE | {"file_name": "a.xlsx"}}, "source.file_name"),
        ({"source": SOURCE | {"x": 1}}, "source.x"),
        ({"source": SOURCE | {"type": "url"}}, "source"),
    ],
)  # fmt: skip
def test_a_wrong_shape_is_422_and_names_the_place(
    client: TestClient, settings: Settings, change: dict[str, Any], loc: str
) -> None:
    sheets = make_table(client)
    answer = client.post(sheets, json=file_body(b"a\n1\n") | change)
    assert answer.status_code == 422, answer.text
    places = [".".join(problem["loc"]) for problem in answer.json()["detail"]]
    assert any(place.startswith(f"body.{loc}") for place in places)
    assert spooled(settings) == []
    assert sheet_count(client, sheets) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"source": {"type": "file", "file_name": "a.csv", "file_content_base64": "QQ',
        b'{"source": {"type": "file", "file_name": "a.csv", "file_content_base64": "QQ"}}',
        b'{"source": {"type": "file", "file_name": "a.csv", "file_content_base64": "Q!=="}}',
        b'{"source": {"type": "file", "file_name": "a.csv", "file_content_base64": "QUJD" "QUJD"}}',
        b'{"title": "a", "title": "b"}',
        b"\xff\xfe{\x00}\x00",
    ],
)
def test_what_is_no_json_or_no_base64_is_400_and_leaves_nothing(
    client: TestClient, settings: Settings, body: bytes
) -> None:
    sheets = make_table(client)
    answer = client.post(sheets, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"] == "validation_error"
    assert spooled(settings) == []
    assert sheet_count(client, sheets) == 1


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("empty.csv", b"", "The file is empty"),
        ("empty.json", b"", "The file is empty"),
        ("zip.csv", b"PK\x03\x04rest", "The file is a zip archive (or a spreadsheet in one), no text"),
        ("table.json", b"a,b\n1,2\n", "Line 1: the file is no JSON: it begins neither with [ nor with {"),
        ("rows.csv", b'[{"a": 1}]', "The file holds JSON, but its name says CSV"),
        ("long.csv", b"a\n1\n1,2\n", "Record 2 (line 3) has 2 values, but the header has 1 columns"),
        ("late.json", b'{"a": 1}\n' * 20_000 + b"x", "Line 20001: row 20001 is no object"),
        ("late.csv", b"a,b\n" + b"1,2\n" * 20_000 + b'"', OPEN_QUOTE),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_imported_fails_the_operation_and_adds_nothing(
    client: TestClient, store: Store, settings: Settings, name: str, content: bytes, sentence: str
) -> None:
    sheets = make_table(client)
    made = client.post(sheets, json=file_body(content, name)).json()
    (end,) = run_waiting(store)
    assert type(end).__name__ == "Refused"
    # what the run's log says holds nothing of the file
    assert str(end) == f"The import was refused; operation {made['operation_id']} says why."
    operation = client.get(f"{sheets}/operations/{made['operation_id']}").json()["operation"]
    assert (operation["status"], operation["rows_added"]) == ("failed", 0)
    assert operation["error_message"] == operation["message"] == sentence
    sheet = client.get(f"{sheets}/{made['sheet']['id']}").json()["sheet"]
    assert (sheet["row_count"], sheet["version_count"]) == (0, 1)
    assert segment_files(settings) == []


def test_a_header_alone_succeeds_with_no_rows(client: TestClient, store: Store) -> None:
    done = import_file(client, store, b"a;b\n")
    assert (done["status"], done["rows_added"], done["titles"]) == ("succeeded", 0, ["a", "b"])


def test_a_repeat_answers_as_the_first_call_did_and_starts_nothing(
    client: TestClient, store: Store, settings: Settings
) -> None:
    sheets = make_table(client)
    body = file_body(b"a\n1\n", operation_id="nightly:1", title="Nightly")
    first = client.post(sheets, json=body)
    again = client.post(sheets, content=json.dumps(dict(reversed(body.items())), indent=2))
    assert (again.status_code, again.json()) == (202, first.json())
    run_waiting(store)
    after = client.post(sheets, json=body)
    assert (after.status_code, after.json()) == (202, first.json())
    assert sheet_count(client, sheets) == 2
    assert len(spooled(settings)) == 1
    assert run_waiting(store) == []


def test_a_repeat_after_a_failure_answers_as_the_first_call_did(client: TestClient, store: Store) -> None:
    sheets = make_table(client)
    body = file_body(b"", operation_id="bad")
    first = client.post(sheets, json=body).json()
    run_waiting(store)
    assert client.post(sheets, json=body).json() == first
    assert run_waiting(store) == []


@pytest.mark.parametrize(
    "changed", [{"title": "Other"}, {"index": 0}, file_body(b"a\n2\n"), file_body(b"a\n1\n", "other.csv")]
)
def test_the_same_operation_id_with_another_body_is_409(
    client: TestClient, settings: Settings, changed: dict[str, Any]
) -> None:
    sheets = make_table(client)
    body = file_body(b"a\n1\n", operation_id="once")
    assert client.post(sheets, json=body).status_code == 202
    answer = client.post(sheets, json=body | changed)
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    assert len(spooled(settings)) == 1
    assert sheet_count(client, sheets) == 2


def test_a_file_over_the_limit_is_413_and_one_of_the_limit_is_taken(
    client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheets = make_table(client)
    small = Settings(home=settings.home, max_file_bytes=1000)
    monkeypatch.setattr(client.app.state.service, "settings", small)  # type: ignore[attr-defined]
    store = client.app.state.service.store  # type: ignore[attr-defined]
    object.__setattr__(store, "settings", small)
    assert client.post(sheets, json=file_body(b"a" * 1000)).status_code == 202
    answer = client.post(sheets, json=file_body(b"a" * 1001))
    assert (answer.status_code, answer.json()["error"]) == (413, "payload_too_large")
    assert len(spooled(settings)) == 1


def test_refusals_come_in_order(client: TestClient, foreign_key: str) -> None:
    sheets = make_table(client)
    broken = {"content": b"{"}
    assert client.post(sheets, headers={"X-API-KEY": "wrong"}, **broken).status_code == 401
    assert client.post(sheets, headers={"X-API-KEY": foreign_key}, **broken).status_code == 404
    assert client.post(f"{TABLES}/nonsense/sheets", **broken).status_code == 404
    assert client.post(sheets, **broken).status_code == 400


def test_neither_catalog_nor_answers_know_a_path(
    client: TestClient, store: Store, settings: Settings
) -> None:
    sheets = make_table(client)
    made = client.post(sheets, json=file_body(b"a\n1\n"))
    run_waiting(store)
    polled = client.get(f"{sheets}/operations/{made.json()['operation_id']}")
    home = str(settings.root)
    assert home not in made.text + polled.text
    with store.catalog.read() as connection:
        rows = connection.exec_driver_sql("SELECT spec, answer, message FROM operations").fetchall()
        rows += connection.exec_driver_sql("SELECT key FROM segments").fetchall()
    assert home not in str(rows)


def test_escapes_in_the_base64_text_are_read(client: TestClient, store: Store) -> None:
    sheets = make_table(client)
    text = base64.b64encode(b"a\n???~~~\n").decode()
    spelled = text.replace("/", "\\/").replace("+", "\\u002b").replace("Y", "\\u0059")
    assert spelled != text
    body = f'{{"source": {{"file_content_base64": "{spelled}", "file_name": "a.csv", "type": "file"}}}}'
    made = client.post(sheets, content=body)
    assert made.status_code == 202
    run_waiting(store)
    page = client.get(f"{sheets}/{made.json()['sheet']['id']}/rows").json()
    assert [cell["value"] for row in page["data"] for cell in row["cells"].values()] == ["???~~~"]
