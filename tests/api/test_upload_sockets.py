"""Uploads over real sockets: bodies that stop, stall, lie about their length, or are too large."""

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import psutil
import pytest

from storage.settings import Settings
from storage.store import Store, opened
from storage.workspaces import bootstrap
from tests.conftest import KEY

MB = 1024 * 1024
PIECE = 256 * 1024
IDLE_S = 2.0


@dataclass
class Server:
    port: int
    pid: int
    settings: Settings

    def connect(self, path: str, headers: str) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        common = f"Host: x\r\nX-API-KEY: {KEY}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        head = f"POST {path} HTTP/1.1\r\n{common}{headers}\r\n"
        connection.sendall(head.encode())
        return connection

    def post(self, path: str, pieces: Iterable[bytes], length: int) -> tuple[int, dict[str, Any]]:
        """Send a body; an answer that comes before its end counts."""
        with self.connect(path, f"Content-Length: {length}\r\n") as connection:
            try:
                for piece in pieces:
                    connection.sendall(piece)
            except (BrokenPipeError, ConnectionResetError):
                pass
            return answer_of(connection)

    def parts(self) -> list[Path]:
        folder = self.settings.root / "data" / "spool"
        return sorted(folder.iterdir()) if folder.exists() else []


def answer_of(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    received = b""
    with suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@contextmanager
def serving(settings: Settings) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = subprocess.Popen(
            [sys.executable, "-m", "api.server", "--fd", str(listener.fileno())],
            env={**os.environ, **settings.env()},
            pass_fds=[listener.fileno()],
        )
        try:
            yield Server(listener.getsockname()[1], process.pid, settings)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("served") / "home"
    with opened(Settings(home=home, api_key=KEY)) as store:
        bootstrap(store)
    with serving(Settings(home=home, max_file_bytes=4 * MB, body_idle_s=IDLE_S, dagster_port=1)) as server:
        yield server


@pytest.fixture
def server(running: Server) -> Server:
    for part in running.parts():
        part.unlink()
    return running


@pytest.fixture
def sheets(server: Server) -> str:
    return make_sheets(server)


def make_sheets(server: Server) -> str:
    status, made = server.post("/api/public/v2/tables", [b"{}"], 2)
    assert status == 201
    return f"/api/public/v2/tables/{made['table']['id']}/sheets"


def body_around(content: bytes, operation_id: str | None = None) -> bytes:
    """Spell a body whose operation id (a new one if none is given) comes after its file."""
    file = base64.b64encode(content)
    operation_id = f"late-{time.monotonic_ns()}" if operation_id is None else operation_id
    return (
        b'{"source":{"type":"file","file_name":"a.csv","file_content_base64":"%b"},"operation_id":"%b"}'
        % (
            file,
            operation_id.encode(),
        )
    )


def pieces(body: bytes, size: int = PIECE) -> Iterator[bytes]:
    return (body[at : at + size] for at in range(0, len(body), size))


def eventually(condition: Callable[[], bool], within_s: float = 10) -> None:
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def works_as_ever(server: Server, sheets: str) -> None:
    body = body_around(b"a\n1\n", f"after-{time.monotonic_ns()}")
    status, made = server.post(sheets, pieces(body), len(body))
    assert (status, made["operation"]["status"]) == (202, "queued")


def test_a_client_that_goes_away_leaves_nothing(server: Server, sheets: str) -> None:
    body = body_around(b"a\n" * MB)
    for share in (0.1, 0.5, 0.9, 0.999):
        with server.connect(sheets, f"Content-Length: {len(body)}\r\n") as connection:
            connection.sendall(body[: int(len(body) * share)])
            if share in {0.5, 0.9}:
                eventually(lambda: bool(server.parts()))
        eventually(lambda: not server.parts())
    works_as_ever(server, sheets)


def test_a_body_that_ends_early_is_refused(server: Server, sheets: str) -> None:
    body = body_around(b"a\n" * MB)[: 2 * MB]
    status, answer = server.post(sheets, pieces(body), len(body))
    assert (status, answer["error"]) == (400, "validation_error")
    assert server.parts() == []
    works_as_ever(server, sheets)


def test_a_client_that_stalls_is_given_up(server: Server, sheets: str) -> None:
    body = body_around(b"a\n" * MB)
    with server.connect(sheets, f"Content-Length: {len(body)}\r\n") as connection:
        connection.sendall(body[:MB])
        stalled = time.monotonic()
        status, answer = answer_of(connection)
    assert (status, answer["error"]) == (408, "request_timeout")
    assert IDLE_S * 0.9 < time.monotonic() - stalled < IDLE_S + 20
    assert server.parts() == []
    works_as_ever(server, sheets)


@pytest.mark.slow
def test_a_client_that_stalls_behind_what_is_no_base64_is_told_so(server: Server, sheets: str) -> None:
    body = body_around(b"a\n" * MB)
    with server.connect(sheets, f"Content-Length: {len(body)}\r\n") as connection:
        connection.sendall(body[: MB // 2] + b"*" * (MB // 4))
        status, answer = answer_of(connection)
    assert (status, answer["error"]) == (400, "validation_error")
    assert server.parts() == []
    works_as_ever(server, sheets)


@pytest.mark.slow
def test_a_slow_client_that_goes_on_is_served(server: Server, sheets: str) -> None:
    body = body_around(b"a\n1\n")
    with server.connect(sheets, f"Content-Length: {len(body)}\r\n") as connection:
        for piece in pieces(body, len(body) // 5):
            time.sleep(IDLE_S / 4)
            connection.sendall(piece)
        assert answer_of(connection)[0] == 202


def test_a_chunked_body_is_read(server: Server, sheets: str) -> None:
    body = body_around(b"a\n" * MB)
    with server.connect(sheets, "Transfer-Encoding: chunked\r\n") as connection:
        for piece in pieces(body, 100_003):
            connection.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        connection.sendall(b"0\r\n\r\n")
        assert answer_of(connection)[0] == 202
    (upload,) = server.parts()
    assert upload.read_bytes() == b"a\n" * MB


def test_a_file_over_the_limit_is_refused_while_it_comes(server: Server, sheets: str) -> None:
    body = body_around(b"a\n" * (40 * MB))
    sent = 0

    def counted() -> Iterator[bytes]:
        nonlocal sent
        for piece in pieces(body):
            yield piece
            sent += len(piece)

    status, answer = server.post(sheets, counted(), len(body))
    assert (status, answer["error"]) == (413, "payload_too_large")
    assert sent < 20 * MB
    assert server.parts() == []
    works_as_ever(server, sheets)


def test_a_length_that_no_file_can_have_is_refused_at_once(server: Server, sheets: str) -> None:
    status, answer = server.post(sheets, [], 10**12)
    assert (status, answer["error"]) == (413, "payload_too_large")


def test_the_key_is_checked_before_the_body_is_read(server: Server, sheets: str) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        head = f"POST {sheets} HTTP/1.1\r\nHost: x\r\nX-API-KEY: wrong\r\nContent-Length: 2000000\r\n\r\n"
        connection.sendall(head.encode() + bytes(2_000_000))
        status, answer = answer_of(connection)
    assert (status, answer["message"]) == (401, "Invalid API key")
    assert server.parts() == []


@pytest.mark.slow
def test_100_mb_uploads_grow_the_process_by_less_than_32_mb(store: Store, settings: Settings) -> None:
    content = b"0123456789abcde\n" * (104_857_600 // 16)
    body = body_around(content, "")[:-2]
    with serving(Settings(home=settings.home, dagster_port=1)) as server:
        sheets = make_sheets(server)
        works_as_ever(server, sheets)
        process = psutil.Process(server.pid)
        for together in (1, 4):
            before = process.memory_info().rss
            answers: list[int] = []
            done = threading.Event()
            peak = [before]
            watcher = threading.Thread(target=watch, args=(process, peak, done))
            watcher.start()
            threads = [
                threading.Thread(target=upload, args=(server, sheets, body, f"{together}-{n}", answers))
                for n in range(together)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            done.set()
            watcher.join()
            assert answers == [202] * together
            assert (peak[0] - before) / MB < 32
        assert [path.stat().st_size for path in server.parts() if path.stat().st_size > 100] == [
            len(content)
        ] * 5


def watch(process: psutil.Process, peak: list[int], done: threading.Event) -> None:
    while not done.wait(0.005):
        peak[0] = max(peak[0], process.memory_info().rss)


def upload(server: Server, sheets: str, body: bytes, operation_id: str, answers: list[int]) -> None:
    """Send a body whose operation id comes after its file."""
    tail = f'{operation_id}"}}'.encode()
    view = memoryview(body)
    sent = (bytes(view[at : at + PIECE]) for at in range(0, len(body), PIECE))
    answers.append(server.post(sheets, chain(sent, [tail]), len(body) + len(tail))[0])


@pytest.mark.slow
def test_a_200_mb_body_is_refused_and_a_file_of_100_mb_is_taken(store: Store, settings: Settings) -> None:
    with serving(Settings(home=settings.home, dagster_port=1)) as server:
        sheets = make_sheets(server)
        exact = body_around(bytes(104_857_600), "exact")
        assert server.post(sheets, pieces(exact), len(exact))[0] == 202
        del exact
        over = body_around(bytes(104_857_601), "over")
        assert server.post(sheets, pieces(over), len(over))[0] == 413
        del over
        body = body_around(bytes(150 * MB), "far")
        assert server.post(sheets, pieces(body), len(body))[0] == 413
        assert len(server.parts()) == 1
        works_as_ever(server, sheets)
