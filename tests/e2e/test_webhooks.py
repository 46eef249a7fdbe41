"""Webhooks of the running service: told within a second, also after the process was killed."""

import os
import signal
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.receiving import Arrival
from tests.stack import Stack, wait_for

HOOKS = "/api/public/v2/webhooks"


class Told:
    """A receiver in a thread; `at` holds when each arrival came (monotonic seconds)."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.at: list[float] = []
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                told.at.append(time.monotonic())
                told.arrivals.append(Arrival(self.path, headers, body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    def names(self) -> list[str]:
        return [arrival.event["event_type"] for arrival in self.arrivals]


@pytest.fixture
def told() -> Iterator[Told]:
    told = Told()
    thread = threading.Thread(target=told.server.serve_forever)
    thread.start()
    yield told
    told.server.shutdown()
    thread.join()
    told.server.server_close()


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
