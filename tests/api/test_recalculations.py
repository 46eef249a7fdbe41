"""Recalculations over HTTP: asked for, estimated, polled (E19), listed, cancelled."""

from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pipelines.columns.registry import RUNNERS
from pipelines.recalculation import recalculate
from storage.store import Store
from tests.api.test_columns import compare, ids, sheet, statuses

__all__ = ["sheet"]


@pytest.fixture
def computed(client: TestClient, sheet: str) -> str:
    """A sheet whose column Same is computed."""
    run(client, sheet, compare(client, sheet).json()["operation_id"])
    return sheet


def run(client: TestClient, sheet: str, operation_id: str) -> None:
    """Do what the operation's Dagster run does."""
    store: Store = cast("Starlette", client.app).state.service.store
    with store.catalog.read() as connection:
        from storage.engine.rows.operations import find_operation  # noqa: PLC0415

        operation = find_operation(connection, 1, operation_id)
    assert operation is not None
    recalculate(store, operation.no, operation.attempt, "run", lambda _: None, RUNNERS)


def ask(client: TestClient, sheet: str, **body: Any) -> Any:
    return client.post(f"{sheet}/operations", json=body)


def edit(client: TestClient, sheet: str, row: int, value: Any) -> Any:
    cells = client.get(f"{sheet}/rows").json()["data"][row]["cells"]
    return client.patch(f"{sheet}/cells/{cells[ids(client, sheet)['A']]['id']}", json={"value": value})


def test_an_edit_then_a_recalculation(client: TestClient, computed: str) -> None:
    assert edit(client, computed, 0, "other").json()["stale_count"] == 1
    assert statuses(client, computed, "Same") == [("stale", None), *[("completed", None)] * 2]
    asked = ask(client, computed, operation="recalculate")
    assert asked.status_code == 202
    operation = asked.json()["operation"]
    assert (operation["status"], operation["cell_count"], operation["operation"]) == (
        "queued",
        1,
        "recalculate",
    )
    assert statuses(client, computed, "Same")[0][0] == "queued"
    run(client, computed, operation["operation_id"])
    polled = client.get(operation["status_url"]).json()["operation"]
    assert (polled["status"], polled["completed_count"], polled["status_counts"]) == (
        "completed",
        1,
        {"completed": 1},
    )
    listed = client.get(f"{computed}/operations").json()["data"]
    assert listed[0] == polled
    assert len(listed) == 2


def test_a_cell_that_was_computed_without_a_model_says_that_it_took_no_call(
    client: TestClient, sheet: str
) -> None:
    operation = compare(client, sheet).json()["operation_id"]
    column = ids(client, sheet)["Same"]

    def metrics() -> list[Any]:
        rows = client.get(f"{sheet}/rows").json()["data"]
        return [cell["request_metrics"] for cell in (rows[0]["cells"][column], *rows[0]["cells"].values())]

    assert set(map(str, metrics())) == {"None"}
    run(client, sheet, operation)
    computed, *row = metrics()
    assert computed == {
        "request_count": 0,
        "request_ids": [],
        "latency_ms": 0.0,
        "price": 0.0,
        "input_tokens": 0,
        "output_tokens": 0,
        "trace_ids": [],
    }
    assert row.count(None) == len(row) - 1


def test_nothing_to_do_is_said_at_once(client: TestClient, computed: str) -> None:
    asked = ask(client, computed)
    assert (asked.status_code, asked.json()["operation"]["status"]) == (200, "completed")
    assert client.delete(asked.json()["operation"]["status_url"]).status_code == 409


def test_a_dry_run_starts_nothing(client: TestClient, computed: str) -> None:
    edit(client, computed, 0, "other")
    before = client.get(f"{computed}/operations").json()
    answer = ask(client, computed, statuses=[], dry_run=True)
    assert answer.status_code == 200
    told = answer.json()
    (column,) = told["columns"]
    assert (told["cell_count"], told["cached_count"], told["unknown_count"]) == (3, 2, 0)
    assert (column["title"], column["cell_count"], column["cached_count"]) == ("Same", 3, 2)
    assert column["estimated_seconds"] > 0
    assert client.get(f"{computed}/operations").json() == before


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"column_ids": ["6f1d1c52-9c7e-4c9a-8f3e-0b6f4f6f3a10"]}, 404),
        ({"row_indices": [3]}, 422),
        ({"row_indices": [-1]}, 422),
        ({"statuses": ["odd"]}, 422),
        ({"budget": -1}, 422),
        ({"budget": "1"}, 422),
        ({"operation": "other"}, 422),
        ({"force": "yes"}, 422),
        ({"x": 1}, 422),
    ],
)
def test_what_does_not_fit_is_refused(
    client: TestClient, computed: str, body: dict[str, Any], status: int
) -> None:
    refused = ask(client, computed, **body)
    assert refused.status_code == status, refused.text


def test_a_text_column_is_not_computed(client: TestClient, computed: str) -> None:
    refused = ask(client, computed, column_ids=[ids(client, computed)["A"]])
    assert refused.status_code == 400
    assert "A" in refused.json()["message"]


def test_each_kind_of_operation_is_polled_at_its_own_address(client: TestClient, computed: str) -> None:
    operation = ask(client, computed, statuses=[]).json()["operation"]["operation_id"]
    table = computed.split("/sheets/", maxsplit=1)[0]
    assert client.get(f"{table}/sheets/operations/{operation}").status_code == 404
    assert client.get(f"{computed}/operations/unknown").status_code == 404


def test_a_recalculation_is_polled_after_its_sheet_is_deleted(client: TestClient, computed: str) -> None:
    polled = ask(client, computed, statuses=[]).json()["operation"]["status_url"]
    assert client.delete(computed).status_code == 200
    operation = client.get(polled).json()["operation"]
    assert (operation["status"], operation["error_message"]) == ("failed", "sheet deleted")
    assert client.delete(polled).status_code == 404
    client.delete(computed.split("/sheets/", maxsplit=1)[0])
    assert client.get(polled).status_code == 404


def test_a_version_is_not_restored_while_a_recalculation_is_open(client: TestClient, computed: str) -> None:
    first = client.get(f"{computed}/versions").json()["data"][0]["id"]
    operation = ask(client, computed, statuses=[]).json()["operation"]["operation_id"]
    restore = {"source_version_id": first}
    assert client.post(f"{computed}/versions", json=restore).status_code == 409
    client.delete(f"{computed}/operations/{operation}")
    assert client.post(f"{computed}/versions", json=restore).status_code == 201


def test_a_restored_column_reads_what_it_read(client: TestClient, computed: str) -> None:
    made = client.post(f"{computed}/versions", json={"name": "kept"}).json()["version"]
    column = ids(client, computed)["Same"]
    client.delete(f"{computed}/columns/{column}")
    assert edit(client, computed, 0, "z").json()["stale_count"] == 0
    assert client.post(f"{computed}/versions", json={"source_version_id": made["id"]}).status_code == 201
    # its values came back with it, and it is read again
    assert statuses(client, computed, "Same") == [("completed", None)] * 3
    assert edit(client, computed, 0, "z").json()["stale_count"] == 1
