"""Deleting a logged request over HTTP, and the commands over logs: keep, delete, back up, rebuild."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from api.cli import main
from storage import log_deletion
from storage.log_flush import flush_logs
from storage.settings import Settings
from storage.store import Store
from storage.workspaces import create_key
from tests.logs import exchange

REQUESTS = "/api/public/v2/requests"


def test_a_deleted_request_answers_404_and_a_second_delete_too(client: TestClient) -> None:
    log_id = client.post("/log-request", json=exchange()).json()["id"]
    url = f"{REQUESTS}/{log_id}"
    assert client.get(url).status_code == 200
    answer = client.delete(url)
    assert (answer.status_code, answer.json()) == (200, {"success": True, "deleted_count": 1})
    assert client.get(url).status_code == 404
    assert client.delete(url).status_code == 404
    assert client.post("/rest/track-score", json={"request_id": log_id, "score": 1}).status_code == 404
    (told,) = client.get("/api/public/v2/audit", params={"kind": "request_log"}).json()["data"]
    assert (told["action"], told["entity_id"]) == ("delete", str(log_id))


def test_a_key_that_only_logs_or_reads_deletes_nothing(client: TestClient, store: Store) -> None:
    log_id = client.post("/log-request", json=exchange()).json()["id"]
    for scope in ("read", "ingest"):
        key = create_key(store, scopes=[scope])[1]
        answer = client.delete(f"{REQUESTS}/{log_id}", headers={"X-API-KEY": key})
        assert answer.status_code == 403
    assert client.get(f"{REQUESTS}/{log_id}").status_code == 200


def test_the_commands_keep_and_delete_logs(client: TestClient, settings: Settings) -> None:
    def said(*arguments: str) -> str:
        result = CliRunner().invoke(main, ["workspaces", *arguments, "--home", str(settings.home)])
        return f"{result.exit_code} {result.output}"

    for _ in range(2):
        client.post("/log-request", json=exchange())
    assert "for ever" in said("list")
    assert said("keep-logs", "default", "--days", "30") == "0 default keeps its logs for 30 days\n"
    assert "30 days" in said("list")
    assert said("keep-logs", "default").startswith("2 ")
    assert said("keep-logs", "default", "--days", "0").startswith("2 ")
    assert said("keep-logs", "nobody", "--for-ever") == "1 Error: No workspace is named nobody\n"
    assert said("keep-logs", "default", "--for-ever") == "0 default keeps its logs for ever\n"
    assert said("delete-logs", "default", "--yes") == "0 2 logs deleted\n"
    assert client.get(f"{REQUESTS}/1").status_code == 404
    told = client.get("/api/public/v2/audit", params={"kind": "request_log"}).json()["data"]
    assert [entry["action"] for entry in told] == ["delete", "update", "update"]


def test_a_backup_comes_back_and_the_manifest_is_rebuilt(
    client: TestClient, settings: Settings, store: Store, tmp_path: Path
) -> None:
    def said(*arguments: str, home: Path = settings.home) -> str:
        result = CliRunner().invoke(main, [*arguments, "--home", str(home)])
        return f"{result.exit_code} {result.output}"

    for _ in range(3):
        client.post("/log-request", json=exchange())
    flush_logs(store)
    folder, home = tmp_path / "backup", tmp_path / "elsewhere"
    assert said("backup", str(folder)).startswith(f"0 {folder}: ")
    assert "is not empty" in said("backup", str(folder))
    assert "logs before id 4; of 20" in said("restore", str(folder), home=home)
    assert said("restore", str(folder), home=home).startswith("1 Error: ")
    assert said("sql", "SELECT count(*) AS n FROM request_logs", "--format", "csv", home=home) == "0 n\n3\n"
    assert said("doctor", "--rebuild-logs", home=home).startswith("0 1 files named with 3 logs; 0 scores")
    assert "0 indexes were lost" in said("doctor", "--rebuild-index", home=home)
    assert said("restore", str(tmp_path), home=tmp_path / "third").startswith("1 Error: ")


def test_what_a_filter_matches_is_deleted_and_counted(
    client: TestClient, store: Store, foreign_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_deletion, "_AT_ONCE", 2)
    monkeypatch.setattr(log_deletion, "_MATCHES_AT_ONCE", 4)
    for number in range(12):
        body = exchange(metadata={"user": "ada" if number % 2 else "bob"}, tags=[f"t{number}"])
        client.post("/log-request", json=body)
        if number == 7:
            flush_logs(store)
    ada = {"filters": [{"field": "metadata", "operator": "key_equals", "nested_key": "user", "value": "ada"}]}

    def delete(group: object, **headers: str) -> Any:
        return client.post(f"{REQUESTS}/delete", json={"filter_group": group}, headers=headers)

    def left() -> list[int]:
        found = client.post(f"{REQUESTS}/search", json={"per_page": 100}).json()
        assert found["total"] == len(found["items"])
        return [item["id"] for item in found["items"]]

    assert delete(ada, **{"X-API-KEY": foreign_key}).json()["deleted_count"] == 0
    assert len(left()) == 12
    assert delete(ada).json() == {"success": True, "deleted_count": 6}
    assert left() == [11, 9, 7, 5, 3, 1]
    assert delete(ada).json()["deleted_count"] == 0
    totals = client.post(f"{REQUESTS}/analytics", json={}).json()["totals"]
    assert totals["requests"] == 6
    wrong = delete({"filters": [{"field": "nonsense", "operator": "is", "value": "x"}]})
    assert wrong.status_code == 422
    assert client.post(f"{REQUESTS}/delete", json={}).status_code == 422
    assert left() == [11, 9, 7, 5, 3, 1]
    assert delete({"filters": []}).json()["deleted_count"] == 6
    assert left() == []
    told = client.get("/api/public/v2/audit", params={"kind": "request_log"}).json()["data"]
    assert sum(entry["details"]["count"] for entry in told) == 12
