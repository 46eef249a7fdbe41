"""The API process: a real socket, real connections, callers that misbehave."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

from storage.settings import Settings
from storage.store import Store


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    """Run one API process on a socket of its own; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = subprocess.Popen(
            [sys.executable, "-m", "api.server", "--fd", str(listener.fileno())],
            env={**os.environ, **settings.env()},
            pass_fds=[listener.fileno()],
        )
        host, port = listener.getsockname()
        try:
            yield f"http://{host}:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)


@pytest.fixture
def address(store: Store, settings: Settings) -> Iterator[str]:
    with served(settings) as address:
        yield address


def test_a_call_made_while_the_process_starts_is_answered(address: str) -> None:
    assert httpx2.get(f"{address}/health", timeout=30).json() == {"status": "ok"}


def test_an_answer_before_the_body_was_read_closes_the_connection(address: str) -> None:
    httpx2.get(f"{address}/health", timeout=30)
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 200000000\r\n\r\n")
        started = time.monotonic()
        sent, answer = 0, b""
        raw.settimeout(0.01)
        while time.monotonic() - started < 10:
            try:
                sent += raw.send(b"x" * 65536)
            except TimeoutError:
                pass
            except OSError:
                break
            try:
                if not (chunk := raw.recv(65536)):
                    break
                answer += chunk
            except TimeoutError:
                continue
            except OSError:
                break
    assert b" 404 " in answer.splitlines()[0]
    assert b"connection: close" in answer.lower()
    assert sent < 20_000_000


@pytest.mark.parametrize(
    "head", ["GET /health?" + "x" * 70_000 + " HTTP/1.1", "nonsense", "GET / HTTP/1.1\r\nX"]
)
def test_what_is_no_request_is_refused_in_the_shape_of_all_errors(address: str, head: str) -> None:
    httpx2.get(f"{address}/health", timeout=30)
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall(f"{head}\r\nHost: x\r\n\r\n".encode())
        with raw.makefile("rb") as file:
            given, _, body = file.read().partition(b"\r\n\r\n")
    assert given.startswith(b"HTTP/1.1 400 ")
    assert b"x-request-id: " in given
    told = json.loads(body)
    assert (told["success"], told["error"]) == (False, "validation_error")


def test_answers_on_a_kept_connection_do_not_wait_for_acknowledgements(address: str) -> None:
    with httpx2.Client(base_url=address, timeout=30) as client:
        client.get("/health")
        times = []
        for _ in range(41):
            started = time.perf_counter()
            client.get("/health")
            times.append(time.perf_counter() - started)
    # a delayed acknowledgement takes 40 ms
    assert sorted(times)[20] < 0.03
