"""Calls of E8 and what follows it, for tests."""

import base64
from typing import Any

from starlette.testclient import TestClient

from pipelines.imports import run_import
from pipelines.work import run_operation
from storage.domain.operations import IMPORT_FILE
from storage.operations import list_waiting
from storage.store import Store

TABLES = "/api/public/v2/tables"


def make_table(client: TestClient) -> str:
    """Make a table; return the path of its sheets."""
    table_id = client.post(TABLES, json={}).json()["table"]["id"]
    return f"{TABLES}/{table_id}/sheets"


def file_body(content: bytes, name: str = "data.csv", **more: Any) -> dict[str, Any]:
    source = {"type": "file", "file_name": name, "file_content_base64": base64.b64encode(content).decode()}
    return {"source": source, **more}


def run_waiting(store: Store) -> list[BaseException | None]:
    """Do the work of every queued import in this process; return how each ended."""
    ends: list[BaseException | None] = []
    for operation in list_waiting(store):
        try:
            run_operation(
                {IMPORT_FILE: run_import},
                store,
                operation.no,
                operation.attempt,
                f"run-{operation.no}",
                print,
            )
        except Exception as error:  # noqa: BLE001
            ends.append(error)
        else:
            ends.append(None)
    return ends


def import_file(client: TestClient, store: Store, content: bytes, name: str = "data.csv") -> dict[str, Any]:
    """Import a file into a new sheet; return the polled operation, with `rows` as lists of display values."""
    sheets = make_table(client)
    answer = client.post(sheets, json=file_body(content, name))
    assert answer.status_code == 202, answer.text
    run_waiting(store)
    created = answer.json()
    operation: dict[str, Any] = client.get(f"{sheets}/operations/{created['operation_id']}").json()[
        "operation"
    ]
    page = client.get(f"{sheets}/{created['sheet']['id']}/rows", params={"limit": 1000}).json()
    ids = [column["id"] for column in page["columns"]]
    operation["titles"] = [column["title"] for column in page["columns"]]
    operation["rows"] = [[row["cells"][one]["value"] for one in ids] for row in page["data"]]
    return operation
