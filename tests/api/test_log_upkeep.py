"""Deleting a logged request over HTTP, and the commands over logs: keep, delete, back up, rebuild."""

from pathlib import Path

from click.testing import CliRunner
from starlette.testclient import TestClient

from api.cli import main
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
