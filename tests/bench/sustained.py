"""Ten minutes of logging at 16 connections, beside the flush, compaction and index that it keeps busy.

The tail and the files that lack their index are watched from outside meanwhile; then, for a minute, somebody
searches every second.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx2

from storage.engine.rows.log_segments import LOGS, read_tail_state, select_segments
from storage.log_flush import count_log_rows
from storage.log_index import count_unindexed
from storage.settings import Settings
from storage.store import Store, open_store
from tests.bench.bare import bare_server
from tests.bench.ingest import CONNECTIONS, P99_TARGET_MS
from tests.bench.material import log_body
from tests.bench.measure import Bench, cpu_seconds, fdatasync_ms, summary, tool
from tests.bench.service import KEY, Service, running
from tests.bench.wrk import Load, load

RATIO_TARGET, PER_SECOND_TARGET, TAIL_TARGET_BYTES = 0.22, 4_000, 67_108_864
_WARM_UP_S, _BARE_S, _SETTLE_S = 2, 15, 60
_SMALL_BYTES = 8 * 1_048_576
_LOOK_EVERY_S, _SEARCH_EVERY_S = 0.25, 1.0
_SEARCH = "/api/public/v2/requests/search"


@dataclass(slots=True)
class Seen:
    """What was seen beside the load: bytes of the tail, files without an index, and searches."""

    tails: list[int] = field(default_factory=list)
    unindexed: list[int] = field(default_factory=list)
    searches_ms: list[float] = field(default_factory=list)
    searches_refused: int = 0


def run(bench: Bench) -> None:
    tool("wrk", "wrk")
    body, seconds = log_body(), bench.sized(600, 20)
    disk = fdatasync_ms(bench.folder)
    bare = [_bare(bench, body)]
    with running(bench.folder / "home") as service:
        store = open_store(Settings(home=service.home))
        try:
            url = f"{service.url}/log-request"
            load(bench.folder, url, body, KEY, connections=CONNECTIONS, seconds=_WARM_UP_S)
            before, cpu_before = _total(service), cpu_seconds(service.pid)
            with _watching(partial(_watch, store)) as seen:
                real = load(bench.folder, url, body, KEY, connections=CONNECTIONS, seconds=seconds)
            cpu = {name: used - cpu_before.get(name, 0.0) for name, used in cpu_seconds(service.pid).items()}
            kept = _total(service) - before
            ended = _state(store)
            searched_s = bench.sized(60, 10)
            with _watching(partial(_search, service)) as searching:
                beside = load(bench.folder, url, body, KEY, connections=CONNECTIONS, seconds=searched_s)
            settled_s = _settle(store, bench.sized(_SETTLE_S, 40))
            after = _state(store)
            rows = count_log_rows(store)
        finally:
            store.close()
    bare.append(_bare(bench, body))
    bare_per_second = sum(one.per_second for one in bare) / len(bare)
    ratio = real.per_second / bare_per_second
    # wrk gives up on what is under way when its time ends: those may be kept without being counted
    lost, double = max(0, real.requests - kept), max(0, kept - real.requests - CONNECTIONS) + rows.overlapping
    bench.report(
        f"{seconds} s of durable logs, {CONNECTIONS} connections, 3 KB, beside flush, compaction and index",
        per_second=real.per_second,
        p50_ms=real.p50_ms,
        p99_ms=real.p99_ms,
        max_ms=real.max_ms,
        requests=real.requests,
        errors=real.errors,
        lost=lost,
        double=double,
        cpu_s={name: round(used, 1) for name, used in sorted(cpu.items())},
        tail_mb={**_spread(seen.tails), "by_tenths": _tenths(seen.tails)},
        unindexed={"largest": max(seen.unindexed, default=0), "at_end": ended["unindexed"]},
        at_end=ended,
        after_it=after | {"settled_s": settled_s},
        yardstick_bare_per_second=[one.per_second for one in bare],
        ratio=round(ratio, 3),
        target_ratio=RATIO_TARGET,
        target_per_second=PER_SECOND_TARGET,
        target_p99_ms=P99_TARGET_MS,
        target_tail_mb=_mb(TAIL_TARGET_BYTES),
        fdatasync=disk,
        met=ratio >= RATIO_TARGET
        and real.per_second >= PER_SECOND_TARGET
        and real.p99_ms <= P99_TARGET_MS
        and max(seen.tails, default=0) < TAIL_TARGET_BYTES
        and not (real.errors or lost or double)
        and rows.named == rows.in_files,
    )

    bench.report(
        f"a search every second beside them, {searched_s} s",
        **(summary(searching.searches_ms) if searching.searches_ms else {}),
        refused=searching.searches_refused,
        logs_per_second=beside.per_second,
        logs_p99_ms=beside.p99_ms,
        errors=beside.errors,
    )


def _bare(bench: Bench, body: bytes) -> Load:
    with bare_server() as url:
        load(bench.folder, url, body, KEY, connections=CONNECTIONS, seconds=_WARM_UP_S)
        return load(bench.folder, url, body, KEY, connections=CONNECTIONS, seconds=bench.sized(_BARE_S, 5))


def _waiting_bytes(store: Store) -> int:
    with store.logs.read() as connection:
        return read_tail_state(connection).bytes


def _total(service: Service) -> int:
    """How many logs a search counts, flushed or not."""
    return int(service.post(_SEARCH, {"per_page": 1}, status=200)["total"])


@contextmanager
def _watching(watch: Callable[[Seen, threading.Event], None]) -> Iterator[Seen]:
    seen, ended = Seen(), threading.Event()
    watcher = threading.Thread(target=watch, args=(seen, ended), daemon=True)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


def _watch(store: Store, seen: Seen, ended: threading.Event) -> None:
    while not ended.wait(_LOOK_EVERY_S):
        seen.tails.append(_waiting_bytes(store))
        seen.unindexed.append(count_unindexed(store))


def _search(service: Service, seen: Seen, ended: threading.Event) -> None:
    """Ask for the newest logs of a user, as somebody does who looks at what comes in."""
    user = {"field": "metadata", "operator": "key_equals", "nested_key": "user", "value": "u-1234"}
    asked = {"filter_group": {"logic": "AND", "filters": [user]}, "per_page": 50}
    while not ended.wait(_SEARCH_EVERY_S):
        started = time.perf_counter()
        with suppress(httpx2.TransportError):
            answer = service.client.post(_SEARCH, json=asked)
            if answer.status_code == 200:
                seen.searches_ms.append((time.perf_counter() - started) * 1000)
                continue
        seen.searches_refused += 1


def _state(store: Store) -> dict[str, Any]:
    with store.logs.read() as connection:
        named = select_segments(connection, kind=LOGS)
    return {
        "tail_mb": _mb(_waiting_bytes(store)),
        "files": len(named),
        "small_files": sum(one.bytes < _SMALL_BYTES for one in named),
        "unindexed": count_unindexed(store),
    }


def _settle(store: Store, most_s: float) -> float | None:
    """Seconds until nothing waits any more for its flush and index; None: it took longer."""
    started = time.monotonic()
    while (took := time.monotonic() - started) < most_s:
        if not _waiting_bytes(store) and not count_unindexed(store):
            return round(took, 1)
        time.sleep(_LOOK_EVERY_S)
    return None


def _mb(size: float) -> float:
    return round(size / 1e6, 1)


def _spread(sizes: list[int]) -> dict[str, float]:
    ordered = sorted(sizes) or [0]
    return {"p50": _mb(ordered[len(ordered) // 2]), "max": _mb(ordered[-1])}


def _tenths(sizes: list[int]) -> list[float]:
    """The largest of each tenth of the time: does it grow?"""
    step = max(1, -(-len(sizes) // 10))
    return [_mb(max(sizes[at : at + step])) for at in range(0, len(sizes), step)]
