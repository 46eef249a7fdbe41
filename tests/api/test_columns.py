"""Columns over HTTP: created (E16), changed (E17), deleted (E21), listed."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

TABLES = "/api/public/v2/tables"


@pytest.fixture
def sheet(client: TestClient) -> str:
    """The address of a sheet with the text columns A and B and three rows."""
    table = client.post(TABLES, json={}).json()["table"]
    (sheet_id,) = table["sheet_row_counts"]
    url = f"{TABLES}/{table['id']}/sheets/{sheet_id}"
    (column,) = client.get(f"{url}/columns").json()["data"]
    assert client.patch(f"{url}/columns/{column['id']}", json={"title": "A"}).status_code == 200
    made = client.post(f"{url}/columns", json={"title": "B", "type": "text"})
    assert (made.status_code, made.json()["operation_id"]) == (201, None)
    values = [{column["id"]: "x", made.json()["column"]["id"]: "x"}, {column["id"]: "y"}]
    assert client.post(f"{url}/rows", json={"values": values}).status_code == 201
    return url


def compare(client: TestClient, sheet: str, title: str = "Same", **changes: Any) -> Any:
    body = {"title": title, "type": "comparison", "config": {"sources": ["A", "B"]}} | changes
    return client.post(f"{sheet}/columns", json=body)


def version(client: TestClient, sheet: str) -> int:
    return int(client.get(sheet).json()["sheet"]["version_count"])


def columns(client: TestClient, sheet: str) -> list[dict[str, Any]]:
    return list(client.get(f"{sheet}/columns", params={"limit": 1000}).json()["data"])


def ids(client: TestClient, sheet: str) -> dict[str, str]:
    return {column["title"]: column["id"] for column in columns(client, sheet)}


def statuses(client: TestClient, sheet: str, title: str) -> list[tuple[str, str | None]]:
    column = ids(client, sheet)[title]
    rows = client.get(f"{sheet}/rows").json()["data"]
    return [(row["cells"][column]["status"], row["cells"][column]["error"]) for row in rows]


def test_the_bodies_that_the_readme_shows_are_taken(client: TestClient, sheet: str) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    (bodies,) = (
        block for block in re.findall(r"```json\n(.*?)```", readme, re.DOTALL) if '"config"' in block
    )
    for title in ("Answer", "Truth", "Question"):
        client.post(f"{sheet}/columns", json={"title": title, "type": "text"})
    for body in json.loads(bodies):
        made = client.post(f"{sheet}/columns", json=body)
        assert made.status_code == 201, made.text


def test_a_computed_column_begins_queued_with_its_operation(client: TestClient, sheet: str) -> None:
    before = version(client, sheet)
    made = compare(client, sheet, "Same", type="COMPARE", is_output_column=True)
    assert made.status_code == 201, made.text
    answer = made.json()
    known = ids(client, sheet)
    assert answer["version"] == before + 1 == version(client, sheet)
    assert answer["column"]["type"] == "comparison"
    assert answer["column"]["is_output_column"] is True
    assert answer["column"]["config"]["sources"] == [known["A"], known["B"]]
    assert [edge["column_id"] for edge in answer["column"]["dependencies"]] == [known["A"], known["B"]]
    assert answer["column"]["dependencies"][1] == {
        "column_id": known["B"],
        "reference_type": "value",
        "config_key": "sources",
        "config_meta": {"position": 1},
    }
    assert answer["cell_count"] == len(answer["cells"]) == 3
    for cell in answer["cells"]:
        assert (cell["status"], cell["execution_id"], cell["value"]) == (
            "queued",
            answer["operation_id"],
            None,
        )
        shown = client.get(f"{sheet}/cells/{cell['id']}").json()["cell"]
        assert {**shown, "updated_at": None} == {**cell, "updated_at": None}
    polled = client.get(f"{sheet}/operations/{answer['operation_id']}").json()["operation"]
    assert (polled["status"], polled["cell_count"], polled["pending_count"]) == ("queued", 3, 3)
    counts = client.get(f"{sheet}/status-counts").json()
    assert counts == {"success": True, "total_cells": 9, "status_counts": {"completed": 6, "queued": 3}}


def test_a_cancelled_computation_leaves_the_cells_stale(client: TestClient, sheet: str) -> None:
    operation = compare(client, sheet).json()["operation_id"]
    cancelled = client.delete(f"{sheet}/operations/{operation}").json()
    assert cancelled["cancelled_cell_count"] == 3
    assert statuses(client, sheet, "Same") == [("stale", None)] * 3
    polled = client.get(f"{sheet}/operations/{operation}").json()["operation"]
    assert (polled["status"], polled["status_counts"]) == ("cancelled", {"stale": 3})
    assert client.delete(f"{sheet}/operations/{operation}").status_code == 409


@pytest.mark.parametrize(
    ("body", "status", "error", "named"),
    [
        ({"title": "A"}, 409, "conflict", "'A'"),
        ({"title": ""}, 422, "validation_error", "title"),
        ({"title": "x" * 256}, 422, "validation_error", "title"),
        ({"type": "magic"}, 422, "validation_error", "type"),
        ({"position": -1}, 422, "validation_error", "position"),
        ({"colour": 1}, 422, "validation_error", "colour"),
        ({"config": {"sources": ["A", "Nobody"]}}, 400, "invalid_config", "Nobody"),
        ({"config": {"sources": ["A", "Same"]}}, 400, "invalid_config", "Same"),
        ({"config": {"sources": ["A"], "x": 1}}, 400, "invalid_config", "config.x"),
        ({"config": None}, 400, "invalid_config", "config.sources"),
        ({"type": "text"}, 400, "invalid_config", "config.sources"),
        ({"config": {"sources": ["A"], "target": "x" * 1_048_576}}, 422, "validation_error", "config"),
        ({"dependencies": []}, 400, "invalid_config", "dependencies"),
        (
            {"dependencies": [{"column_id": "6f1d1c52-9c7e-4c9a-8f3e-0b6f4f6f3a10"}]},
            400,
            "invalid_config",
            "dependencies",
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    client: TestClient, sheet: str, body: dict[str, Any], status: int, error: str, named: str
) -> None:
    before = version(client, sheet), columns(client, sheet)
    refused = compare(client, sheet, **body)
    assert (refused.status_code, refused.json()["error"]) == (status, error), refused.text
    assert named in refused.text
    assert (version(client, sheet), columns(client, sheet)) == before


def test_dependencies_that_agree_are_taken(client: TestClient, sheet: str) -> None:
    known = ids(client, sheet)
    given = [{"column_id": known[title], "reference_type": "value"} for title in ("B", "A")]
    assert compare(client, sheet, dependencies=given).status_code == 201


def test_columns_stand_where_they_are_put(client: TestClient, sheet: str) -> None:
    for at in range(14):
        assert compare(client, sheet, f"C{at}", position=1).status_code == 201
    titles = [column["title"] for column in columns(client, sheet)]
    assert titles == ["A", *(f"C{at}" for at in reversed(range(14))), "B"]
    last = ids(client, sheet)["B"]
    moved = client.patch(f"{sheet}/columns/{last}", json={"position": 0}).json()
    assert (moved["requires_recalculation"], moved["affected_column_ids"]) == (False, [])
    assert columns(client, sheet)[0]["title"] == "B"


def test_renaming_makes_nothing_stale_and_a_version(client: TestClient, sheet: str) -> None:
    compare(client, sheet)
    before = version(client, sheet)
    renamed = client.patch(f"{sheet}/columns/{ids(client, sheet)['A']}", json={"title": "Z"}).json()
    assert (renamed["requires_recalculation"], renamed["stale_count"]) == (False, 0)
    assert renamed["version"] == before + 1
    again = client.patch(f"{sheet}/columns/{renamed['column']['id']}", json={"title": "Z"}).json()
    assert again["version"] == before + 1
    taken = client.patch(f"{sheet}/columns/{renamed['column']['id']}", json={"title": "B"})
    assert taken.status_code == 409


def test_a_cycle_is_refused_with_its_titles(client: TestClient, sheet: str) -> None:
    first = compare(client, sheet, "First").json()["column"]["id"]
    compare(client, sheet, "Second", config={"sources": ["First"], "target": True})
    third = compare(client, sheet, "Third", config={"sources": ["Second"], "target": True}).json()
    assert third["column"]["title"] == "Third"
    refused = client.patch(f"{sheet}/columns/{first}", json={"config": {"sources": ["Third"], "target": 1}})
    assert (refused.status_code, refused.json()["error"]) == (400, "dependency_cycle")
    assert "First -> Third -> Second -> First" in refused.json()["message"]
    own = client.patch(f"{sheet}/columns/{first}", json={"config": {"sources": ["First"], "target": 1}})
    assert (own.status_code, own.json()["error"]) == (400, "dependency_cycle")


def test_a_cycle_through_another_sheet_is_refused(client: TestClient, sheet: str) -> None:
    table_id, sheet_id = sheet.split("/")[5], sheet.split("/")[7]
    other = client.post(f"{TABLES}/{table_id}/sheets", json={}).json()["sheet"]["id"]
    there = f"{TABLES}/{table_id}/sheets/{other}"
    first = compare(client, sheet, "First").json()["column"]["id"]

    def mirror(sheet_id: str, column_id: str) -> dict[str, Any]:
        return {"source": {"table_id": table_id, "sheet_id": sheet_id, "column_id": column_id}}

    body = {"title": "Mirror", "type": "composition", "config": mirror(sheet_id, first)}
    made = client.post(f"{there}/columns", json=body)
    assert made.status_code == 201, made.text
    back = {"title": "Back", "type": "composition", "config": mirror(other, made.json()["column"]["id"])}
    assert client.post(f"{sheet}/columns", json=back).status_code == 201
    config = {"sources": ["Back"], "target": 1}
    refused = client.patch(f"{sheet}/columns/{first}", json={"config": config})
    assert refused.json()["error"] == "dependency_cycle"
    assert "First -> Back -> Mirror -> First" in refused.json()["message"]
    unknown = {**body, "title": "x", "config": mirror(other, first)}
    assert client.post(f"{there}/columns", json=unknown).json()["error"] == "invalid_config"


def test_a_deleted_column_leaves_its_readers_stale_and_saying_why(client: TestClient, sheet: str) -> None:
    first = compare(client, sheet, "First").json()
    second = compare(client, sheet, "Second", config={"sources": ["First"], "target": True}).json()
    for operation in (first["operation_id"], second["operation_id"]):
        client.delete(f"{sheet}/operations/{operation}")
    before = version(client, sheet)
    gone = client.delete(f"{sheet}/columns/{ids(client, sheet)['B']}").json()
    # they were stale already
    assert (gone["stale_count"], gone["version"]) == (0, before + 1)
    assert "B" not in ids(client, sheet)
    assert statuses(client, sheet, "First") == [("stale", "missing_source")] * 3
    assert statuses(client, sheet, "Second") == [("stale", None)] * 3
    row = client.get(f"{sheet}/rows").json()["data"][0]["cells"][first["column"]["id"]]
    assert "B" in row["error_message"]
    assert client.delete(f"{sheet}/columns/{second['column']['id']}").status_code == 200
    assert client.delete(f"{sheet}/columns/{second['column']['id']}").status_code == 404


def test_a_version_reads_as_it_was(client: TestClient, sheet: str) -> None:
    made = compare(client, sheet).json()
    rows = client.get(f"{sheet}/rows", params={"version_number": made["version"]}).json()
    cells = [row["cells"][made["column"]["id"]] for row in rows["data"]]
    assert {cell["status"] for cell in cells} == {"stale"}


def test_a_column_of_another_sheet_is_unknown(client: TestClient, sheet: str) -> None:
    other = client.post(TABLES, json={}).json()["table"]
    (sheet_id,) = other["sheet_row_counts"]
    column = ids(client, sheet)["A"]
    url = f"{TABLES}/{other['id']}/sheets/{sheet_id}/columns/{column}"
    assert client.patch(url, json={"title": "x"}).status_code == 404
    assert client.delete(url).status_code == 404


def test_each_type_has_its_schema_in_the_document(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    config = document["components"]["schemas"]["ColumnCreate"]["properties"]["config"]
    assert [one.get("title") for one in config["anyOf"]] == [
        "TextConfig",
        "PromptTemplateConfig",
        "LlmConfig",
        "CodeConfig",
        "ScoreConfig",
        "ComparisonConfig",
        "CompositionConfig",
        None,
    ]
