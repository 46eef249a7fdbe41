"""Webhooks over HTTP: the secret once, bad targets refused, deliveries paged, scopes kept."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from api.app import create_app
from storage.settings import SettingError, Settings
from storage.store import Store
from storage.workspaces import create_key
from tests.conftest import KEY

HOOKS = "/api/public/v2/webhooks"
TARGET = "https://93.184.215.14/hook"
CREATED = "prompt_template_version_created"


def made(client: TestClient, **changes: Any) -> dict[str, Any]:
    answer = client.post(HOOKS, json={"url": TARGET, "event_types": [CREATED]} | changes)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def publish(client: TestClient, name: str = "greet") -> None:
    blueprint = {"type": "completion", "content": [{"type": "text", "text": "Say {x}"}]}
    body = {"prompt_template": {"prompt_name": name}, "prompt_version": {"prompt_template": blueprint}}
    assert client.post("/rest/prompt-templates", json=body).status_code == 201


def test_the_secret_is_shown_once_and_never_logged(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    body = made(client, event_types=[CREATED, "report_finished", CREATED])
    assert (body["success"], body["url"]) == (True, TARGET)
    assert body["event_types"] == ["report_finished", CREATED]
    rotated = client.post(f"{HOOKS}/{body['id']}/rotate-secret", json={"overlap_hours": 1}).json()
    assert rotated["secret"] != body["secret"]
    assert rotated["previous_secret_until"] is not None
    publish(client)
    seen = [
        client.get(HOOKS).text,
        client.get(f"{HOOKS}/{body['id']}").text,
        client.get(f"{HOOKS}/{body['id']}/deliveries").text,
        client.get("/api/public/v2/audit").text,
        caplog.text,
    ]
    for text in seen:
        assert body["secret"] not in text
        assert rotated["secret"] not in text
    assert client.post(f"{HOOKS}/{body['id']}/rotate-secret").status_code == 200


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/",
        "http://localhost/",
        "http://[::1]/",
        "http://0.0.0.0/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:169.254.169.254]/",
        "http://100.64.0.1/",
        "ftp://93.184.215.14/",
        "https://user:word@93.184.215.14/",
        "not a url",
        "",
        "https://93.184.215.14/" + "x" * 2048,
    ],
)
def test_targets_that_are_private_or_no_urls_are_refused(client: TestClient, url: str) -> None:
    answer = client.post(HOOKS, json={"url": url, "event_types": [CREATED]})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["body", "url"]
    assert client.get(HOOKS).json()["data"] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"event_types": []},
        {"event_types": ["nothing_of_that_name"]},
        {"event_types": CREATED},
        {"event_types": None},
        {"url": None},
        {"url": 7},
        {"secret": "mine"},
    ],
)
def test_bodies_of_another_shape_are_refused(client: TestClient, changes: dict[str, Any]) -> None:
    answer = client.post(HOOKS, json={"url": TARGET, "event_types": [CREATED]} | changes)
    assert (answer.status_code, answer.json()["error"]) == (422, "validation_error")
    overlap = {"overlap_hours": -1}
    assert client.post(f"{HOOKS}/{made(client)['id']}/rotate-secret", json=overlap).status_code == 422


@pytest.fixture
def allowing(settings: Settings, store: Store) -> Iterator[TestClient]:
    allowed = replace(settings, webhook_allow="127.0.0.0/8, localhost")
    with TestClient(create_app(allowed), headers={"X-API-KEY": KEY}) as client:
        yield client


def test_the_operator_may_allow_private_targets(allowing: TestClient) -> None:
    for url in ("http://127.0.0.1:9/", "http://localhost:9/"):
        made(allowing, url=url)
    refused = allowing.post(HOOKS, json={"url": "http://10.0.0.1/", "event_types": [CREATED]})
    assert "PROMPTLAKE_WEBHOOK_ALLOW" in refused.json()["message"]


def test_a_bad_allowance_keeps_the_service_from_starting() -> None:
    with pytest.raises(SettingError, match="PROMPTLAKE_WEBHOOK_ALLOW"):
        Settings.from_env({"PROMPTLAKE_WEBHOOK_ALLOW": "10.0.0.0/8 and more"})


def test_deliveries_are_paged_filtered_and_shown(client: TestClient) -> None:
    hook = made(client)["id"]
    for number in range(5):
        publish(client, f"p{number}")
    page = client.get(f"{HOOKS}/{hook}/deliveries", params={"limit": 2, "status": "pending"}).json()
    assert [item["event_type"] for item in page["data"]] == [CREATED] * 2
    assert page["filters"] == {"status": "pending"}
    cursor = page["pagination"]["next_cursor"]
    second = client.get(
        f"{HOOKS}/{hook}/deliveries", params={"limit": 2, "status": "pending", "cursor": cursor}
    )
    assert second.json()["data"][0]["id"] < page["data"][1]["id"]
    other = client.get(f"{HOOKS}/{hook}/deliveries", params={"status": "dead", "cursor": cursor})
    assert (other.status_code, other.json()["error"]) == (400, "invalid_cursor")
    shown = client.get(f"{HOOKS}/{hook}/deliveries/{page['data'][0]['id']}").json()["delivery"]
    assert '"prompt_template_name": "p4"' in shown["request_body"]
    assert (shown["status"], shown["attempts"], shown["response_body"]) == ("pending", 0, None)
    again = client.post(f"{HOOKS}/{hook}/deliveries/{shown['id']}/redeliver")
    assert (again.status_code, again.json()["delivery"]["id"]) == (201, shown["id"])


def test_a_deleted_webhook_is_gone(client: TestClient) -> None:
    hook = made(client)["id"]
    assert client.delete(f"{HOOKS}/{hook}").json()["success"] is True
    for path in ("", "/deliveries", "/deliveries/1"):
        assert client.get(f"{HOOKS}/{hook}{path}").status_code == 404
    assert client.delete(f"{HOOKS}/{hook}").status_code == 404
    for odd in ("x", "-1", "1" * 40, "%C2%B2"):
        assert client.get(f"{HOOKS}/{odd}").status_code == 404


def test_only_administrators_see_webhooks(client: TestClient, store: Store) -> None:
    writer = {"X-API-KEY": create_key(store, scopes=["write"])[1]}
    assert client.get(HOOKS, headers=writer).status_code == 403
    assert client.post(HOOKS, headers=writer, json={}).status_code == 403


def test_a_workspace_has_its_number_of_webhooks(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.webhooks.MAX_WEBHOOKS", 2)
    made(client)
    made(client)
    refused = client.post(HOOKS, json={"url": TARGET, "event_types": [CREATED]})
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
