"""Webhooks of the running service: told within a second, also after the process was killed."""

import os
import signal
import time
from base64 import b64encode
from collections.abc import Iterator

import pytest

from tests.stack import Stack, wait_for
from tests.told import Told, telling

HOOKS = "/api/public/v2/webhooks"


@pytest.fixture
def told() -> Iterator[Told]:
    with telling() as told:
        yield told


@pytest.fixture
def secret(stack: Stack, told: Told) -> Iterator[str]:
    types = [
        "prompt_template_version_created",
        "prompt_template_label_created",
        "table_sheet_created_from_file",
        "table_sheet_created_from_file_failed",
    ]
    made = stack.api.post(HOOKS, json={"url": told.url, "event_types": types}).json()
    yield made["secret"]
    stack.api.delete(f"{HOOKS}/{made['id']}")


def publish(stack: Stack, name: str) -> float:
    """Publish a prompt; return when that was answered."""
    blueprint = {"type": "completion", "content": [{"type": "text", "text": "x"}]}
    body = {
        "prompt_template": {"prompt_name": name},
        "prompt_version": {"prompt_template": blueprint},
        "release_labels": ["prod"],
    }
    assert stack.api.post("/rest/prompt-templates", json=body).status_code == 201
    return time.monotonic()


def test_publications_and_imports_are_told_as_they_happen(stack: Stack, told: Told, secret: str) -> None:
    stack.wait_ready()
    answered = publish(stack, "told")
    wait_for(lambda: len(told.arrivals) == 2, 10, "two events")
    assert told.at[0] - answered < 1.0
    assert told.names() == ["prompt_template_version_created", "prompt_template_label_created"]
    table = stack.api.post("/api/public/v2/tables", json={}).json()["table"]["id"]
    for content in (b"a,b\n1,2\n", b"a,a\n1,2\n"):
        file = {"type": "file", "file_name": "x.csv", "file_content_base64": b64encode(content).decode()}
        assert (
            stack.api.post(f"/api/public/v2/tables/{table}/sheets", json={"source": file}).status_code == 202
        )
    wait_for(lambda: len(told.arrivals) == 4, 30, "the ends of two imports")
    assert sorted(told.names()[2:]) == [
        "table_sheet_created_from_file",
        "table_sheet_created_from_file_failed",
    ]
    assert all(arrival.signed_by(secret) for arrival in told.arrivals)


def test_a_killed_process_comes_back_and_delivers_what_happened_meanwhile(
    stack: Stack, told: Told, secret: str
) -> None:
    os.kill(stack.pids()["webhooks"], signal.SIGKILL)
    publish(stack, "meanwhile")
    wait_for(lambda: len(told.arrivals) == 2, 30, "what happened while nobody delivered")
    assert all(arrival.signed_by(secret) for arrival in told.arrivals)
