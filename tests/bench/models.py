"""Model columns: calls a second of CPU to a server without latency; what is lost where each takes a second.

What runs here is what a run does: prompts filled, calls made, priced, logged (to a process of its own), kept
and committed. The yardstick makes the same calls with the bare HTTP client, and nothing else.
"""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import uvloop

from api.home_lock import bind_unix
from storage.domain.keys import Principal
from storage.settings import Settings
from storage.store import Store, open_store
from storage.workspaces import bootstrap, find_key
from tests.bench.measure import Bench
from tests.recalculating import Bench as Sheet

_KEY = "bench-key-of-the-default-workspace-01"
CALLS_A_SECOND, LOST = 600, 0.05
_AT_ONCE = 64


def run(bench: Bench) -> None:
    count = bench.sized(6_000, 600)
    with _server(0.0) as url, _store(bench.folder / "home", url) as (store, who):
        _column(store, who, 100)
        wall, cpu = _column(store, who, count)
        bare_wall, bare_cpu = _bare(url, count)
        bench.report(
            "model calls to a server without latency, 64 in flight",
            calls_a_second_of_cpu=round(count / cpu),
            calls_a_second=round(count / wall),
            target_calls_a_second_of_cpu=CALLS_A_SECOND,
            yardstick_bare_client_a_second_of_cpu=round(count / bare_cpu),
            yardstick_bare_client_a_second=round(count / bare_wall),
            met=count / cpu >= CALLS_A_SECOND,
        )
    count = bench.sized(1_280, 192)
    with _server(1.0) as url, _store(bench.folder / "slow", url) as (store, who):
        _column(store, who, 2)
        wall, _ = _column(store, who, count)
        bare_wall, _ = _bare(url, count)
        ideal = count / _AT_ONCE
        bench.report(
            "model calls of 1 s each, 64 in flight",
            seconds=round(wall, 2),
            ideal_seconds=ideal,
            yardstick_bare_client_seconds=round(bare_wall, 2),
            target_lost=LOST,
            met=wall <= ideal * (1 + LOST),
        )


def _column(store: Store, who: Principal, count: int) -> tuple[float, float]:
    """Compute a column of that many different prompts; return seconds, of the clock and of this CPU."""
    mark = store.new_id().hex[:8]
    sheet = Sheet(store, who, ["Question"], [[f"{mark} {n}"] for n in range(count)])
    engine = {"provider": "openai", "model": "gpt-4o-mini"}
    operation = sheet.add("Answer", "llm", prompt="Answer in a word: {Question}", engine=engine).operation
    begun, begun_cpu = time.perf_counter(), time.process_time()
    sheet.run(operation)
    spent = time.perf_counter() - begun, time.process_time() - begun_cpu
    if sheet.poll(operation).completed_count != count:
        raise RuntimeError("cells of the benchmark failed")
    return spent


def _bare(url: str, count: int) -> tuple[float, float]:
    async def work() -> None:
        left = iter(range(count))
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=_AT_ONCE)) as session:

            async def ask() -> None:
                for n in left:
                    body = {"model": "m", "messages": [{"role": "user", "content": f"bare {n}"}]}
                    async with session.post(f"{url}/chat/completions", json=body) as response:
                        await response.json()

            await asyncio.gather(*(ask() for _ in range(_AT_ONCE)))

    begun, begun_cpu = time.perf_counter(), time.process_time()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work())
    return time.perf_counter() - begun, time.process_time() - begun_cpu


@contextmanager
def _server(delay_s: float) -> Iterator[str]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "tests.model_server", str(port), str(delay_s)])
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()
        server.wait()


def _wait_for(port: int) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the server of the benchmark does not start")


@contextmanager
def _store(home: Path, url: str) -> Iterator[tuple[Store, Principal]]:
    """Open a store whose logs another process writes; the environment has the provider's key and address."""
    settings = Settings(home=home, api_key=_KEY)
    with ExitStack() as stack:
        store = stack.enter_context(closing(open_store(settings)))
        bootstrap(store)
        facts = find_key(store, _KEY)
        if facts is None:
            raise RuntimeError("the benchmark's key is unknown")
        listener = stack.enter_context(bind_unix(settings.log_socket))
        command = [sys.executable, "-m", "storage.log_writing", "--fd", str(listener.fileno())]
        env = {**os.environ, **settings.env()}
        writer = subprocess.Popen(command, env=env, pass_fds=[listener.fileno()])
        stack.callback(writer.wait)
        stack.callback(writer.kill)
        os.environ |= {"OPENAI_API_KEY": "sk-bench", "OPENAI_BASE_URL": url}
        handed = replace(settings, log_writer="remote", model_calls=_AT_ONCE)
        yield replace(store, settings=handed), facts.principal
