"""The longest chain of columns that a sheet can hold, each reading the one before, over HTTP."""

import time
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from storage.column_binding import Bound
from storage.domain.cells import STALE
from storage.domain.column_types.binding import VALUE, Edge
from storage.domain.columns import MOST_COLUMNS, Column
from storage.domain.manifests import Fill
from storage.domain.sheets import Sheet
from storage.engine.rows.columns import select_columns
from storage.engine.snapshots import commit
from storage.new_columns import NewColumn, insert_bound
from storage.sheets import require_sheet
from storage.store import Store
from storage.structure import record_structure
from storage.tables import create_table
from storage.workspaces import find_key
from tests.api.test_recalculations import run
from tests.conftest import KEY
from tests.importing import imported_sheet

MOST_S = 15.0
"""What one call may take here, on a busy machine; a way that grew with the square would take minutes."""


def lay_chain(store: Store, length: int) -> Sheet:
    """Make a sheet of columns that copy the one before, all at once: one by one would be as many versions."""
    facts = find_key(store, KEY)
    assert facts is not None
    who = facts.principal
    sheet = imported_sheet(store, who, create_table(store, who).id, ["A"], [["1"], ["2"]])
    with store.catalog.transaction() as connection:
        sheet = require_sheet(connection, who, sheet.table_id, sheet.id)
        head, now = store.snapshots.get(connection, sheet.head_no), store.now()
        columns: list[Column] = select_columns(connection, sheet.no)
        fills = {}
        for at in range(length):
            source = columns[-1]
            new = NewColumn(f"C{at}", "composition", {})
            edge = Edge(column_id=str(source.id), reference_type=VALUE, config_key="source", config_meta={})
            bound = Bound({"source": str(source.id)}, [edge], [source.no])
            columns.append(insert_bound(connection, store, sheet, [source], new, bound, now))
            fills[columns[-1].no] = Fill(None, now, STALE)
        manifest = head.manifest.with_fills(fills)
        snapshot = commit(connection, head, manifest, next_row_no=sheet.next_row_no, now=now)
        record_structure(connection, store, who, sheet, snapshot=snapshot, name="laid", deltas=[], now=now)
    return sheet


@pytest.mark.parametrize(
    "most", [60, pytest.param(MOST_COLUMNS, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_the_longest_chain(client: TestClient, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr("storage.new_columns.MOST_COLUMNS", most)
    store: Store = cast("Starlette", client.app).state.service.store
    laid = lay_chain(store, most - 2)
    sheet = f"/api/public/v2/tables/{laid.table_id}/sheets/{laid.id}"
    took: dict[str, float] = {}

    def call(method: str, path: str, body: Any = None) -> Any:
        started = time.perf_counter()
        answer = client.request(method, sheet + path, json=body)
        took[f"{method} {path[:11]}"] = seconds = time.perf_counter() - started
        assert seconds < MOST_S, took
        return answer

    def recalculated() -> dict[str, Any]:
        operation = call("POST", "/operations", {"operation": "recalculate"}).json()["operation"]
        started = time.perf_counter()
        run(client, sheet, operation["operation_id"])
        took["recalculation"] = time.perf_counter() - started
        return call("GET", f"/operations/{operation['operation_id']}").json()["operation"]

    last = {"title": "Last", "type": "composition", "config": {"source": f"C{most - 3}"}}
    made = call("POST", "/columns", last)
    assert made.status_code == 201, made.text
    one_more = call("POST", "/columns", {"title": "More", "type": "text"})
    assert (one_more.status_code, one_more.json()["error"]) == (409, "conflict")
    call("DELETE", f"/operations/{made.json()['operation_id']}")

    columns = store_columns(store, laid)
    cycle = call("PATCH", f"/columns/{columns['C0'].id}", {"config": {"source": "Last"}})
    assert (cycle.status_code, cycle.json()["error"]) == (400, "dependency_cycle")
    assert f"C0 -> Last -> C{most - 3}" in cycle.json()["message"]
    assert len(cycle.json()["message"]) < 1_000

    done = recalculated()
    cells = 2 * (most - 1)
    assert (done["status"], done["completed_count"], done["failed_count"]) == ("completed", cells, 0)
    assert values(client, sheet, columns["A"], columns["Last"]) == [["1", "1"], ["2", "2"]]

    head = client.get(f"{sheet}/rows?column_ids={columns['A'].id}").json()["data"][0]["cells"]
    cell = head[str(columns["A"].id)]["id"]
    edited = call("PATCH", f"/cells/{cell}", {"value": "new"})
    assert edited.json()["stale_count"] == most - 1
    assert call("GET", "/status-counts").json()["status_counts"]["stale"] == most - 1
    # what is stale already costs nothing to mark again
    assert call("PATCH", f"/cells/{cell}", {"value": "newer"}).json()["stale_count"] == 0
    done = recalculated()
    assert (done["status"], done["completed_count"]) == ("completed", most - 1)
    assert values(client, sheet, columns["A"], columns["Last"]) == [["newer", "newer"], ["2", "2"]]

    kept = call("POST", "/versions", {"name": "kept"}).json()["version"]["id"]
    changed = call(
        "PATCH", f"/columns/{columns['C0'].id}", {"config": {"operation": "concat", "sources": ["A"]}}
    )
    assert len(changed.json()["affected_column_ids"]) == most - 1
    gone = call("DELETE", f"/columns/{columns[f'C{most // 2}'].id}")
    assert gone.status_code == 200
    restored = call("POST", "/versions", {"source_version_id": kept})
    assert restored.status_code == 201
    assert values(client, sheet, columns["A"], columns["Last"]) == [["newer", "newer"], ["2", "2"]]
    assert client.delete(sheet).status_code == 200
    print({what: round(seconds, 2) for what, seconds in took.items()})


def store_columns(store: Store, sheet: Sheet) -> dict[str, Column]:
    with store.catalog.read() as connection:
        return {column.title: column for column in select_columns(connection, sheet.no)}


def values(client: TestClient, sheet: str, *columns: Column) -> list[list[Any]]:
    named = [str(column.id) for column in columns]
    page = client.get(f"{sheet}/rows?column_ids={','.join(named)}").json()
    return [[row["cells"][one]["value"] for one in named] for row in page["data"]]
