"""Calls that tests of datasets and reports make."""

import base64
from typing import Any

from starlette.testclient import TestClient

from pipelines.registry import WORK
from pipelines.work import run_operation
from storage.operations import claim, list_waiting, settle_ended_run
from storage.store import Store

V2 = "/api/public/v2"
VERSIONS = f"{V2}/dataset-versions"


def make_group(client: TestClient, name: str = "Questions", **more: Any) -> int:
    answer = client.post(f"{V2}/dataset-groups", json={"name": name, **more})
    assert answer.status_code == 201, answer.text
    return int(answer.json()["dataset_group"]["id"])


def from_file(client: TestClient, group: int, content: bytes, name: str = "q.csv") -> Any:
    body = {
        "dataset_group_id": group,
        "file_name": name,
        "file_content_base64": base64.b64encode(content).decode(),
    }
    return client.post(f"{VERSIONS}/from-file", json=body)


def call(client: TestClient, verb: str, group: int, **more: Any) -> Any:
    return client.post(f"{VERSIONS}/{verb}", json={"dataset_group_id": group, **more})


def run_all(store: Store) -> list[BaseException | None]:
    """Do all queued work in this process; return how each ended."""
    ends: list[BaseException | None] = []
    for one in list_waiting(store):
        try:
            run_operation(WORK, store, one.no, one.attempt, f"run-{one.no}", lambda _: None)
        except Exception as error:  # noqa: BLE001
            ends.append(error)
        else:
            ends.append(None)
    return ends


def versions(client: TestClient, group: int, **query: Any) -> list[dict[str, Any]]:
    params = {"dataset_group_id": group, "sort_by": "id", "sort_order": "asc", **query}
    answer = client.get(f"{V2}/datasets", params=params)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["datasets"])


def numbers(client: TestClient, group: int, **query: Any) -> list[int]:
    return [one["version_number"] for one in versions(client, group, **query)]


def rows(client: TestClient, dataset: int) -> list[dict[str, Any]]:
    answer = client.get(f"{V2}/datasets/{dataset}/rows", params={"limit": 1000})
    assert answer.status_code == 200, answer.text
    return [row["values"] for row in answer.json()["data"]]


def saved(client: TestClient, store: Store, group: int, content: bytes = b"a,b\n1,2\n") -> int:
    made = from_file(client, group, content)
    assert made.status_code == 201, made.text
    assert run_all(store) == [None]
    return int(made.json()["dataset_id"])


def listed(client: TestClient, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(f"{V2}/datasets", params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["datasets"])


def log(client: TestClient, **more: Any) -> int:
    example = client.get("/openapi.json").json()["components"]["schemas"]["LogRequest"]["examples"][0]
    fields = {key: value for key, value in example.items() if not key.startswith("prompt_")}
    answer = client.post("/log-request", json={**fields, **more})
    assert answer.status_code == 201, answer.text
    return int(answer.json()["id"])


def publish(client: TestClient, name: str) -> dict[str, Any]:
    blueprint = {"type": "completion", "content": [{"type": "text", "text": "Say {x}"}]}
    body = {
        "prompt_template": {"prompt_name": name},
        "prompt_version": {"prompt_template": blueprint},
        "release_labels": ["prod"],
    }
    return dict(client.post("/rest/prompt-templates", json=body).json())


def lose_run(store: Store) -> None:
    """Let the run of the queued operation claim it and die, as Dagster tells of it."""
    (queued,) = list_waiting(store)
    claim(store, queued.no, queued.attempt, "run-that-dies")
    settle_ended_run(store, queued.no, queued.attempt, "run-that-dies", cancelled=False)
