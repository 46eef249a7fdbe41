"""Every route that takes an id, walked with the ids of another workspace: each answers 404 first of all.

A new path parameter needs a line in `MAKERS`: how an entity of its kind is made in the workspace `default`.
"""

import re
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from api.openapi import operations
from pipelines.registry import WORK
from pipelines.work import run_operation
from storage.operations import list_waiting
from storage.workspaces import find_key
from tests.conftest import KEY
from tests.importing import start

Ids = dict[str, str]
Maker = Callable[[TestClient, Ids], Any]


def _prompt(client: TestClient, ids: Ids) -> str:
    blueprint = {"type": "completion", "content": [{"type": "text", "text": "Say {x}"}]}
    body = {"prompt_template": {"prompt_name": "a/b"}, "prompt_version": {"prompt_template": blueprint}}
    assert client.post("/rest/prompt-templates", json=body).status_code == 201
    return "a/b"


def _prompt_id(client: TestClient, ids: Ids) -> int:
    return int(client.get("/prompt-templates/a%2Fb").json()["id"])


def _label(client: TestClient, ids: Ids) -> int:
    body = {"name": f"stage/{uuid4()}", "prompt_version_number": 1}
    return int(client.post(f"/prompts/{ids['prompt_id']}/label", json=body).json()["release_label_id"])


def _table(client: TestClient, ids: Ids) -> str:
    return client.post("/api/public/v2/tables", json={}).json()["table"]["id"]


def _sheet(client: TestClient, ids: Ids) -> str:
    (found,) = client.get(f"/api/public/v2/tables/{ids['table_id']}").json()["table"]["sheet_row_counts"]
    return found


def _cell(client: TestClient, ids: Ids) -> str:
    rows = client.get(f"/api/public/v2/tables/{ids['table_id']}/sheets/{ids['sheet_id']}/rows").json()
    (cell,) = rows["data"][0]["cells"].values()
    return cell["id"]


def _operation(client: TestClient, ids: Ids) -> str:
    store = cast("Starlette", client.app).state.service.store
    facts = find_key(store, KEY)
    assert facts is not None
    return start(store, facts.principal, UUID(ids["table_id"]), UUID(ids["sheet_id"])).operation.id


def _column(client: TestClient, ids: Ids) -> str:
    path = f"/api/public/v2/tables/{ids['table_id']}/sheets/{ids['sheet_id']}/columns"
    return client.get(path).json()["data"][0]["id"]


def _recalculation(client: TestClient, ids: Ids) -> str:
    path = f"/api/public/v2/tables/{ids['table_id']}/sheets/{ids['sheet_id']}/columns"
    config = {"sources": [ids["column_id"]], "target": 1}
    body = {"title": f"{uuid4()}", "type": "comparison", "config": config}
    return client.post(path, json=body).json()["operation_id"]


def _version(client: TestClient, ids: Ids) -> str:
    path = f"/api/public/v2/tables/{ids['table_id']}/sheets/{ids['sheet_id']}/versions"
    return client.post(path, json={"name": "kept"}).json()["version"]["id"]


def _request(client: TestClient, _ids: Ids) -> int:
    example = client.get("/openapi.json").json()["components"]["schemas"]["LogRequest"]["examples"][0]
    answer = client.post("/log-request", json=example)
    assert answer.status_code == 201
    return int(answer.json()["id"])


def _webhook(client: TestClient, ids: Ids) -> int:
    body = {"url": "https://93.184.215.14/hook", "event_types": ["prompt_template_version_created"]}
    return client.post("/api/public/v2/webhooks", json=body).json()["id"]


def _delivery(client: TestClient, ids: Ids) -> int:
    _prompt(client, ids)
    (found,) = client.get(f"/api/public/v2/webhooks/{ids['webhook_id']}/deliveries").json()["data"]
    return found["id"]


def _folder(client: TestClient, _ids: Ids) -> int:
    name = f"folder {uuid4()}"
    return client.post("/api/public/v2/folders", json={"name": name}).json()["id"]


def _workflow(client: TestClient, _ids: Ids) -> str:
    name = f"flows/{uuid4()}"
    assert client.post("/rest/workflows", json={"name": name, "nodes": []}).status_code == 201
    return name


def _document(path: str) -> Maker:
    def make(client: TestClient, _ids: Ids) -> int:
        return client.post(path, json={"name": f"{uuid4()}", "content": {}}).json()["id"]

    return make


def _dataset_group(client: TestClient, _ids: Ids) -> int:
    answer = client.post("/api/public/v2/dataset-groups", json={"name": f"{uuid4()}"})
    return answer.json()["dataset_group"]["id"]


def _dataset(client: TestClient, ids: Ids) -> int:
    body = {"dataset_group_id": int(ids["dataset_group_id"])}
    return client.post("/api/public/v2/dataset-versions/create-draft", json=body).json()["draft_dataset_id"]


def _report(client: TestClient, ids: Ids) -> int:
    group = _dataset_group(client, ids)
    body = {"dataset_group_id": group, "file_name": "a.csv", "file_content_base64": "YQ0KMQ0K"}
    assert client.post("/api/public/v2/dataset-versions/from-file", json=body).status_code == 201
    store = cast("Starlette", client.app).state.service.store
    queued = list_waiting(store)[-1]
    run_operation(WORK, store, queued.no, queued.attempt, "run", lambda _: None)
    column = {"title": "b", "type": "comparison", "config": {"sources": ["a"], "target": "1"}}
    body = {"dataset_group_id": group, "name": "r", "columns": [column]}
    return client.post("/reports", json=body).json()["report"]["id"]


# In order: a later one may use the ids of those before it.
MAKERS: dict[str, Maker] = {
    "identifier": _prompt,
    "prompt_id": _prompt_id,
    "label_id": _label,
    "table_id": _table,
    "sheet_id": _sheet,
    "cell_id": _cell,
    "column_id": _column,
    "version_id": _version,
    "operation_id": _operation,
    "request_id": _request,
    "webhook_id": _webhook,
    "delivery_id": _delivery,
    "folder_id": _folder,
    "workflow": _workflow,
    "ab_test_id": _document("/rest/ab-tests"),
    "input_variable_set_id": _document("/rest/input-variable-sets"),
    "dataset_group_id": _dataset_group,
    "dataset_id": _dataset,
    "report_id": _report,
}


# Paths that know one kind of what others know two of.
MAKERS_OF_PATH: dict[str, dict[str, Maker]] = {
    "/api/public/v2/tables/{table_id}/sheets/{sheet_id}/operations/{operation_id}": {
        "operation_id": _recalculation
    },
}


@pytest.fixture
def ids(client: TestClient) -> Ids:
    """An id of each kind, all of the workspace `default`."""
    made: Ids = {}
    for name, make in MAKERS.items():
        made[name] = quote(str(make(client, made)), safe="")
    return made


def test_ids_of_another_workspace_are_unknown_on_every_route(
    client: TestClient, foreign_key: str, ids: Ids
) -> None:
    wrong = []
    walked = 0
    for method, path, operation in operations(client.get("/openapi.json").json()):
        names = re.findall(r"{(\w+)", path)
        if not names or "x-scope" not in operation:
            continue
        assert set(names) <= set(ids), f"teach MAKERS how to make {set(names) - set(ids)} for {path}"
        walked += 1
        own = {name: make(client, ids) for name, make in MAKERS_OF_PATH.get(path, {}).items()}
        url = re.sub(r"{(\w+)[^}]*}", lambda name, made={**ids, **own}: made[name[1]], path)
        # a body that is no JSON: the id must be looked at first
        answer = client.request(method, url, content=b"{", headers={"X-API-KEY": foreign_key})
        if (answer.status_code, answer.json()["error"]) != (404, "not_found"):
            wrong.append(f"{method} {path}: {answer.status_code} {answer.text[:100]}")
        if method == "get" and client.get(url).status_code == 404:
            wrong.append(f"{method} {path}: the owner does not find it either")
    assert walked
    assert wrong == []
