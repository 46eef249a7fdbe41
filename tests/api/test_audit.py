"""The audit trail: every route that changes something leaves an entry, and administrators read them.

A new route that changes something needs a line in `BODIES`, or in `UNTOLD` with the reason.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from api.openapi import operations
from storage.audit import record_audit
from storage.domain.errors import Unavailable
from storage.domain.keys import Principal
from storage.engine.schema import metadata
from storage.store import Store
from storage.workspaces import create_key, create_workspace, find_key, revoke_key, rotate_key
from tests.api.test_isolation import MAKERS
from tests.conftest import KEY

AUDIT = "/api/public/v2/audit"
BLUEPRINT = {"type": "completion", "content": [{"type": "text", "text": "Say {x}"}]}
HOOK = {"url": "https://93.184.215.14/", "event_types": ["report_finished"]}


def _group(client: TestClient) -> int:
    return int(MAKERS["dataset_group_id"](client, {}))


def _group_with_draft(client: TestClient, **more: Any) -> dict[str, Any]:
    group = _group(client)
    MAKERS["dataset_id"](client, {"dataset_group_id": str(group)})
    return {"dataset_group_id": group, **more}


def _run_newest_report(client: TestClient) -> None:
    newest = client.get("/reports").json()["items"][0]["id"]
    assert client.post(f"/reports/{newest}/run", json={"name": "fresh"}).status_code == 201


# What a call that succeeds sends, by method and path, or what makes that; None: no body.
BODIES: dict[str, Any] = {
    "delete /api/public/v2/requests/{request_id}": None,
    "post /api/public/v2/requests/delete": {"filter_group": {"filters": []}},
    "post /api/public/v2/folders": {"name": "Support"},
    "patch /api/public/v2/folders/{folder_id}": {"name": "Sales"},
    "delete /api/public/v2/folders/{folder_id}": None,
    "post /api/public/v2/folders/entities": lambda client: {
        "entities": [{"id": MAKERS["folder_id"](client, {})}],
        "folder_id": MAKERS["folder_id"](client, {}),
    },
    "patch /api/public/v2/tables/{table_id}/sheets/{sheet_id}/score": {"score_type": "numeric"},
    "post /api/public/v2/tables/{table_id}/sheets/{sheet_id}/score": None,
    "post /rest/workflows": {"name": "fresh", "nodes": []},
    "delete /workflows/{workflow}": None,
    "post /rest/ab-tests": {"name": "fresh", "content": {}},
    "delete /rest/ab-tests/{ab_test_id}": None,
    "post /rest/input-variable-sets": {"name": "fresh", "content": {}},
    "delete /rest/input-variable-sets/{input_variable_set_id}": None,
    "post /api/public/v2/dataset-groups": {"name": "fresh"},
    "patch /api/public/v2/dataset-groups/{dataset_group_id}": {"name": "renamed"},
    "delete /api/public/v2/dataset-groups/{dataset_group_id}": None,
    "post /api/public/v2/dataset-versions/from-file": lambda client: {
        "dataset_group_id": _group(client),
        "file_name": "a.csv",
        "file_content_base64": "YQ0KMQ0K",
    },
    "post /api/public/v2/dataset-versions/from-filter-params": lambda client: {
        "dataset_group_id": _group(client),
        "filter_group": {},
    },
    "post /api/public/v2/dataset-versions/create-draft": lambda client: {"dataset_group_id": _group(client)},
    "post /api/public/v2/dataset-versions/save-draft": _group_with_draft,
    "post /api/public/v2/dataset-versions/add-rows": lambda client: _group_with_draft(
        client, rows=[{"a": 1}]
    ),
    "delete /api/public/v2/datasets/{dataset_id}": None,
    "post /reports": lambda client: {
        "dataset_group_id": _group(client),
        "name": "fresh",
        "columns": [{"title": "b", "type": "comparison", "config": {"sources": ["a"], "target": "1"}}],
    },
    "post /reports/{report_id}/run": {"name": "fresh"},
    "post /reports/{report_id}/cancel": _run_newest_report,
    "delete /reports/{report_id}": None,
    "post /rest/prompt-templates": {
        "prompt_template": {"prompt_name": "fresh"},
        "prompt_version": {"prompt_template": BLUEPRINT},
    },
    "patch /prompt-templates/{identifier}": {"tags": ["fresh"]},
    "delete /prompt-templates/{identifier}": None,
    "post /prompts/{prompt_id}/label": {"name": "prod", "prompt_version_number": 1},
    "patch /prompt-labels/{label_id}": {"prompt_version_number": 2},
    "delete /prompt-labels/{label_id}": None,
    "post /api/public/v2/tables": {},
    "delete /api/public/v2/tables/{table_id}": None,
    "patch /api/public/v2/tables/{table_id}": {"title": "renamed"},
    "post /api/public/v2/tables/{table_id}/undelete": None,
    "post /api/public/v2/tables/{table_id}/sheets": {},
    "delete /api/public/v2/tables/{table_id}/sheets/{sheet_id}": None,
    "patch /api/public/v2/tables/{table_id}/sheets/{sheet_id}": {"title": "renamed"},
    "post /api/public/v2/tables/{table_id}/sheets/{sheet_id}/undelete": None,
    "post /api/public/v2/tables/{table_id}/sheets/{sheet_id}/versions": {"name": "saved"},
    "post /api/public/v2/tables/{table_id}/sheets/{sheet_id}/imports/file": {
        "file_name": "a.csv",
        "file_content_base64": "YQ0KMQ0K",
    },
    "post /api/public/v2/tables/{table_id}/sheets/{sheet_id}/rows": {"count": 2},
    "delete /api/public/v2/tables/{table_id}/sheets/{sheet_id}/rows": {"row_indices": [0]},
    "patch /api/public/v2/tables/{table_id}/sheets/{sheet_id}/cells/{cell_id}": {"value": "edited"},
    "delete /api/public/v2/tables/{table_id}/sheets/{sheet_id}/operations/{operation_id}": None,
    "post /api/public/v2/tables/{table_id}/sheets/{sheet_id}/imports/request-logs": {"filter_group": {}},
    "post /api/public/v2/tables/{table_id}/sheets/{sheet_id}/operations": {},
    "post /api/public/v2/tables/{table_id}/sheets/{sheet_id}/columns": {"title": "New", "type": "text"},
    "patch /api/public/v2/tables/{table_id}/sheets/{sheet_id}/columns/{column_id}": {"title": "Renamed"},
    "delete /api/public/v2/tables/{table_id}/sheets/{sheet_id}/columns/{column_id}": None,
    "post /api/public/v2/webhooks": HOOK,
    "delete /api/public/v2/webhooks/{webhook_id}": None,
    "post /api/public/v2/webhooks/{webhook_id}/rotate-secret": None,
    "post /api/public/v2/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver": None,
}
_TABLE, _SHEET = "/api/public/v2/tables/{table_id}", "/api/public/v2/tables/{table_id}/sheets/{sheet_id}"
# What must have happened before a call can succeed: method and path.
BEFORE: dict[str, tuple[str, str]] = {
    f"post {_TABLE}/undelete": ("DELETE", _TABLE),
    f"post {_SHEET}/undelete": ("DELETE", _SHEET),
    f"post {_SHEET}/imports/file": ("DELETE", _SHEET + "/operations/{operation_id}"),
    f"post {_SHEET}/imports/request-logs": ("DELETE", _SHEET + "/operations/{operation_id}"),
}
UNTOLD = {
    "post /log-request": "a log is its own record, of which there are thousands a second",
    "post /api/public/v2/requests/search": "reads",
    "post /api/public/v2/requests/analytics": "reads",
    "post /prompt-templates/{identifier}": "reads: fills in variables",
    **dict.fromkeys(
        (
            "post /rest/track-score",
            "post /rest/track-metadata",
            "post /rest/track-prompt",
            "post /rest/track-group",
            "post /rest/create-group",
            "post /library-track-score",
            "post /library-track-metadata",
            "post /library-track-prompt",
            "post /track-group",
            "post /create-group",
            "post /track-request",
            "post /api/public/v2/requests/batch",
            "post /v1/traces",
        ),
        "said of a log, by machines and as often as logs come",
    ),
}


def entries(client: TestClient, **query: Any) -> list[dict[str, Any]]:
    return list(client.get(AUDIT, params={"limit": 100} | query).json()["data"])


def made_ids(client: TestClient) -> dict[str, str]:
    made: dict[str, str] = {}
    for name, make in MAKERS.items():
        made[name] = quote(str(make(client, made)), safe="")
    return made


def _filled(path: str, ids: dict[str, str]) -> str:
    return re.sub(r"{(\w+)[^}]*}", lambda found: ids[found[1]], path)


def changes(client: TestClient) -> Iterator[tuple[str, Callable[[], Response]]]:
    """Every route that changes something, with a call of it on entities made for it."""
    for method, path, operation in operations(client.get("/openapi.json").json()):
        name = f"{method} {path}"
        if method == "get" or "x-scope" not in operation or name in UNTOLD:
            continue
        assert name in BODIES, (
            f"teach BODIES a call of {name} that succeeds, or UNTOLD why it leaves no entry"
        )
        ids = made_ids(client) if "{" in path else {}
        if name in BEFORE:
            verb, place = BEFORE[name]
            assert client.request(verb, _filled(place, ids)).status_code == 200
        url = _filled(path, ids)
        body = BODIES[name](client) if callable(BODIES[name]) else BODIES[name]
        yield name, partial(client.request, method, url, json=body)


def test_every_route_that_changes_something_leaves_an_entry(client: TestClient) -> None:
    silent = []
    walked = set()
    for name, call in changes(client):
        walked.add(name)
        last = entries(client)[0]["id"]
        answer = call()
        assert answer.status_code < 300, f"{name}: {answer.text}"
        if entries(client)[0]["id"] == last:
            silent.append(name)
    assert walked == set(BODIES), f"no such route: {set(BODIES) - walked}"
    assert silent == []


def test_a_change_whose_entry_cannot_be_written_does_not_happen(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise Unavailable("The catalog cannot be written now (disk full or busy).")

    def content() -> dict[str, list[Any]]:
        with store.catalog.read() as connection:
            tables = metadata.sorted_tables
            return {table.name: list(map(tuple, connection.execute(table.select()))) for table in tables}

    happened = []
    for name, call in changes(client):
        before = content()
        with monkeypatch.context() as broken:
            broken.setattr("storage.audit.insert_audit_entry", full)
            answer = call()
        assert answer.status_code == 503, f"{name}: {answer.text}"
        if content() != before:
            happened.append(name)
    assert happened == []


def test_a_refused_call_leaves_none(client: TestClient) -> None:
    before = entries(client)
    assert client.post("/api/public/v2/folders", json={"name": ""}).status_code == 422
    assert client.post("/api/public/v2/folders", json={"name": "x", "parent_id": 99}).status_code == 404
    assert entries(client) == before


def test_an_entry_tells_who_did_what_to_which_entity_and_when(client: TestClient, store: Store) -> None:
    key = create_key(store, user="ann", email="ann@example.com", scopes=["write"])[1]
    folder = client.post("/api/public/v2/folders", json={"name": "x"}, headers={"X-API-KEY": key}).json()
    (entry,) = entries(client, kind="folder")
    facts = find_key(store, key)
    assert facts is not None
    assert entry["user_id"] == facts.principal.user_id
    assert entry["created_by"] == "ann@example.com"
    assert (entry["action"], entry["entity_id"]) == ("create", str(folder["id"]))
    assert entry["created_at"].endswith("Z")


def test_keys_and_workspaces_are_told_of(client: TestClient, store: Store) -> None:
    created, _ = create_key(store)
    rotated, _ = rotate_key(store, created.id)
    revoke_key(store, rotated.id)
    told = [(e["action"], e["entity_id"]) for e in entries(client, kind="api_key")]
    assert told[:3] == [("revoke", str(rotated.id)), ("rotate", str(rotated.id)), ("create", str(created.id))]
    (first_key,) = told[3:]
    assert first_key[0] == "create"
    (workspace,) = entries(client, kind="workspace")
    assert (workspace["user_id"], workspace["details"]["by"]) == (None, "first start")
    create_workspace(store, "other")
    assert len(entries(client, kind="workspace")) == 1


def test_pages_lead_back_to_the_first_entry_and_on_again(
    client: TestClient, who: Principal, store: Store
) -> None:
    with store.catalog.transaction() as connection:
        for number in range(25):
            record_audit(connection, store, who, action="update", kind="thing", entity_id=number)
    seen: list[str] = []
    cursor = None
    while True:
        page = client.get(
            AUDIT, params={"kind": "thing", "limit": 10, **({"cursor": cursor} if cursor else {})}
        )
        body = page.json()
        seen += [entry["entity_id"] for entry in body["data"]]
        cursor = body["pagination"]["next_cursor"]
        if not body["pagination"]["has_more"]:
            break
    assert seen == [str(number) for number in reversed(range(25))]
    back = client.get(
        AUDIT, params={"kind": "thing", "limit": 10, "cursor": body["pagination"]["prev_cursor"]}
    )
    assert [entry["entity_id"] for entry in back.json()["data"]] == [str(n) for n in reversed(range(5, 15))]


@pytest.fixture
def who(store: Store) -> Principal:
    facts = find_key(store, KEY)
    assert facts is not None
    return facts.principal


def test_only_administrators_read_it_and_only_their_workspace(
    client: TestClient, store: Store, foreign_key: str
) -> None:
    reader = {"X-API-KEY": create_key(store, scopes=["read", "write"])[1]}
    assert client.get(AUDIT, headers=reader).status_code == 403
    client.post("/api/public/v2/folders", json={"name": "x"})
    foreign = client.get(AUDIT, headers={"X-API-KEY": foreign_key}).json()["data"]
    assert {entry["kind"] for entry in foreign} == {"workspace", "api_key"}
    assert client.get(AUDIT, params={"limit": 101}).status_code == 422
    assert client.get(AUDIT, params={"cursor": "x"}).json()["error"] == "invalid_cursor"
