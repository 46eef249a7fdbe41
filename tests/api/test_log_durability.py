"""What was answered is kept: killed processes, failing disks, bodies that misbehave, on real sockets."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from api.home_lock import bind_unix
from storage.domain.request_logs import LogFilter
from storage.log_flush import flush_logs
from storage.request_logs import scan_request_logs
from storage.settings import Settings
from storage.store import Store
from tests.conftest import KEY
from tests.logs import exchange

HEADERS = {"X-API-KEY": KEY}


class Api:
    """API processes on one socket, as the supervisor starts them."""

    def __init__(self, settings: Settings, listener: socket.socket, *wrapper: str) -> None:
        self._settings, self._listener, self._wrapper = settings, listener, wrapper
        host, port = listener.getsockname()
        self.url = f"http://{host}:{port}"
        self.address = (str(host), int(port))
        self.process = self.start()

    def start(self, **settings: str) -> "subprocess.Popen[bytes]":
        fd = self._listener.fileno()
        return subprocess.Popen(
            [*self._wrapper, sys.executable, "-m", "api.server", "--fd", str(fd)],
            env={**os.environ, **replace(self._settings, **settings).env()},
            pass_fds=[fd],
        )

    def restart(self) -> None:
        self.process = self.start()
        httpx2.get(f"{self.url}/health", timeout=60)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)


@contextmanager
def running(settings: Settings, *wrapper: str) -> Iterator[Api]:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        api = Api(settings, listener, *wrapper)
        try:
            httpx2.get(f"{api.url}/health", timeout=60)
            yield api
        finally:
            api.process.send_signal(signal.SIGTERM)
            api.process.wait(20)


def head(length: int) -> bytes:
    """The head of a call of E1 whose body has that many bytes."""
    fields = f"Host: x\r\nX-API-KEY: {KEY}\r\nContent-Length: {length}"
    return f"POST /log-request HTTP/1.1\r\n{fields}\r\n\r\n".encode()


class Callers:
    """Threads that log as fast as they can, each exchange once under its own name."""

    def __init__(self, url: str, count: int) -> None:
        self.answered: dict[str, int] = {}
        self.statuses: set[int] = set()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(url, n)) for n in range(count)]
        for thread in self._threads:
            thread.start()

    def _call(self, url: str, number: int) -> None:
        sent = 0
        with httpx2.Client(headers=HEADERS, timeout=2) as client:
            while not self._stop.is_set():
                name = f"{number}-{sent}"
                sent += 1
                try:
                    answer = client.post(f"{url}/log-request", json=exchange(function_name=name))
                except httpx2.HTTPError:
                    time.sleep(0.01)
                    continue
                self.statuses.add(answer.status_code)
                if answer.status_code == 201:
                    self.answered[name] = answer.json()["id"]

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def stored_names(store: Store) -> dict[str, int]:
    """Every log by the name it was sent under; a doubled one fails."""
    found: dict[str, int] = {}
    for batch in scan_request_logs(store, 1, LogFilter()):
        names = batch.column("function_name").to_pylist()
        for name, log_id in zip(names, batch.column("id").to_pylist(), strict=True):
            assert name not in found, f"{name} is there twice"
            found[name] = log_id
    return found


def lost(answered: dict[str, int], stored: dict[str, int]) -> dict[str, int]:
    return {name: log_id for name, log_id in answered.items() if stored.get(name) != log_id}


def test_kill_9_right_after_the_answers_loses_none_and_doubles_none(store: Store, settings: Settings) -> None:
    with running(settings) as api:
        callers = Callers(api.url, 4)
        try:
            while len(callers.answered) < 100:
                time.sleep(0.01)
            api.kill()
        finally:
            callers.stop()
        assert lost(callers.answered, stored_names(store)) == {}
        api.restart()
        answer = httpx2.post(f"{api.url}/log-request", json=exchange(), headers=HEADERS)
        assert answer.json()["id"] > max(callers.answered.values())


@pytest.mark.slow
def test_kills_of_server_and_flush_again_and_again_lose_none_and_double_none(
    store: Store, settings: Settings
) -> None:
    flush = "import os; from storage.settings import Settings; from storage.store import opened\n"
    flush += "from storage.log_flush import *; import storage.log_flush as f; f.LEASE_S = 1\n"
    flush += "with opened(Settings.from_env(os.environ)) as s:\n"
    flush += " while True:\n  try: flush_logs(s)\n  except LeaseRefused: pass\n"
    with running(settings) as api:
        callers = Callers(api.url, 8)
        try:
            for turn in range(12):
                flusher = subprocess.Popen(
                    [sys.executable, "-c", flush], env={**os.environ, **settings.env()}
                )
                time.sleep(1.5 + 0.13 * turn)
                seen = dict(callers.answered)
                assert lost(seen, stored_names(store)) == {}
                flusher.kill()
                flusher.wait()
                api.kill()
                assert lost(dict(callers.answered), stored_names(store)) == {}
                api.restart()
        finally:
            callers.stop()
        assert len(callers.answered) > 500
        assert lost(callers.answered, stored_names(store)) == {}
    later = replace(store, now=lambda: store.now().replace(year=store.now().year + 1))
    flush_logs(later)
    assert lost(callers.answered, stored_names(store)) == {}


def test_a_full_disk_is_503_never_201_and_the_service_goes_on_when_space_returns(
    store: Store, settings: Settings
) -> None:
    body = exchange(function_name="x" * 100_000)
    with running(settings) as api, httpx2.Client(base_url=api.url, headers=HEADERS, timeout=30) as client:
        assert client.post("/log-request", json=body).status_code == 201
        log = settings.root / "logs.sqlite3-wal"
        whole = resource.prlimit(api.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(api.process.pid, resource.RLIMIT_FSIZE, (log.stat().st_size + 50_000, whole[1]))
        for _ in range(3):
            refused = client.post("/log-request", json=body)
            assert (refused.status_code, refused.json()["error"]) == (503, "unavailable")
            assert refused.headers["retry-after"].isdigit()
        assert client.get("/health").status_code == 200
        resource.prlimit(api.process.pid, resource.RLIMIT_FSIZE, whole)
        again = client.post("/log-request", json=body)
        assert again.status_code == 201
    ids = [i for b in scan_request_logs(store, 1, LogFilter()) for i in b.column("id").to_pylist()]
    assert len(ids) == 2
    assert again.json()["id"] == ids[0]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_each_groups_fdatasync_returns_before_its_first_answer(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    calls = "trace=fdatasync,fsync,write,sendto,writev,sendmsg"
    with running(settings, "strace", "-f", "-s", "16", "-y", "-e", calls, "-o", str(trace)) as api:
        with httpx2.Client(base_url=api.url, headers=HEADERS, timeout=30) as client:
            for _ in range(50):
                assert client.post("/log-request", json=exchange()).status_code == 201
        with suppress(ProcessLookupError):  # strace itself would go on without its child
            child = int(
                subprocess.run(
                    ["pgrep", "-P", str(api.process.pid)], check=True, capture_output=True, text=True
                ).stdout
            )
            os.kill(child, signal.SIGTERM)
    synced = answered = 0
    durable = False
    for line in trace.read_text().splitlines():
        if re.search(r"(fdatasync|fsync)\(.*logs\.sqlite3-wal", line) or "fdatasync resumed" in line:
            # "unfinished" is a call that has not returned: it proves nothing yet
            if line.endswith("= 0"):
                synced += 1
                durable = True
        elif "HTTP/1.1 201" in line:
            assert durable, line
            answered += 1
            durable = False
    assert answered == 50
    assert synced >= 50


def test_a_body_of_200_megabytes_is_refused_before_it_is_sent(store: Store, settings: Settings) -> None:
    with running(settings) as api, socket.create_connection(api.address, timeout=10) as raw:
        raw.sendall(head(209_715_200))
        sent = 0
        with suppress(OSError):
            for _ in range(3200):
                sent += raw.send(b"x" * 65536)
        answer = b""
        with suppress(OSError):
            while chunk := raw.recv(65536):
                answer += chunk
        assert sent < 30_000_000
        assert not answer or b" 413 " in answer.splitlines()[0]
        # a client that waits before it sends is answered, too
        with socket.create_connection(api.address, timeout=10) as quiet:
            quiet.sendall(head(209_715_200))
            assert b" 413 " in quiet.recv(65536).splitlines()[0]
        assert httpx2.get(f"{api.url}/health").status_code == 200


def test_answers_without_a_body_and_calls_that_follow_at_once_all_come(
    store: Store, settings: Settings
) -> None:
    with running(settings) as api, socket.create_connection(api.address, timeout=10) as raw:
        calls = [b"HEAD /health", b"GET /health", b"GET /docs", b"HEAD /docs", b"GET /nothing"]
        raw.sendall(b"".join(call + b" HTTP/1.1\r\nHost: x\r\n\r\n" for call in calls))
        answers = b""
        while answers.count(b"HTTP/1.1 ") < len(calls):
            piece = raw.recv(65536)
            assert piece, answers
            answers += piece
        assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"405", b"200", b"200", b"405", b"404"]


def test_a_slow_client_is_408_and_others_are_served_meanwhile(store: Store, settings: Settings) -> None:
    impatient = replace(settings, body_idle_s=1.0)
    with running(impatient) as api, socket.create_connection(api.address, timeout=10) as slow:
        slow.sendall(head(500) + b"{")
        answer = httpx2.post(f"{api.url}/log-request", json=exchange(), headers=HEADERS)
        assert answer.status_code == 201
        said = b"".join(iter(lambda: slow.recv(65536), b""))
        assert b" 408 " in said.splitlines()[0]
        assert json.loads(said.split(b"\r\n\r\n")[1])["error"] == "request_timeout"
        # a client that goes away in the middle leaves no trace
        with socket.create_connection(api.address, timeout=10) as rude:
            rude.sendall(head(50) + b"{")
        assert httpx2.post(f"{api.url}/log-request", json=exchange(), headers=HEADERS).json()["id"] == 2


@pytest.mark.slow
def test_two_processes_share_the_socket_and_a_third_one_writes(store: Store, settings: Settings) -> None:
    remote = replace(settings, log_writer="remote")
    with bind_unix(settings.log_socket) as logs, running(remote) as api:
        writer = start_writer(settings, logs)
        other = api.start()
        try:
            httpx2.get(f"{api.url}/health", timeout=60)
            callers = Callers(api.url, 16)
            for _ in range(3):
                time.sleep(2)
                writer.kill()
                writer.wait()
                writer = start_writer(settings, logs)
            before, until = len(callers.answered), time.monotonic() + 60
            while len(callers.answered) < before + 100 and time.monotonic() < until:
                time.sleep(0.1)
            callers.stop()
            assert len(callers.answered) >= before + 100
            # those whose log was under way are told that nothing is known; all others wait for the new writer
            assert callers.statuses <= {201, 503}
            assert lost(callers.answered, stored_names(store)) == {}
        finally:
            other.terminate()
            other.wait(20)
            writer.terminate()
            writer.wait(20)


def start_writer(settings: Settings, listener: socket.socket) -> "subprocess.Popen[bytes]":
    fd = listener.fileno()
    return subprocess.Popen(
        [sys.executable, "-m", "storage.log_writing", "--fd", str(fd)],
        env={**os.environ, **settings.env()},
        pass_fds=[fd],
    )
