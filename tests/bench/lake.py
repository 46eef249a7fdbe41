"""From the tail to Parquet: bytes on disk, and CPU time of flush, compaction and index, beside bare zstd."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from storage import log_compaction
from storage.engine.rows.log_tail import Entry, Submission, append_group
from storage.log_compaction import compact_logs
from storage.log_flush import flush_logs
from storage.log_index import index_logs
from storage.settings import Settings
from storage.store import Store, open_store
from storage.workspaces import bootstrap
from tests.bench.many_logs import Logs
from tests.bench.measure import Bench

PARQUET_TARGET, WITH_INDEX_TARGET = 0.40, 0.50
ONE_DAY = timedelta(days=1)
_GROUP, _FLUSH_ROWS = 200, 5_000


def run(bench: Bench) -> None:
    rows = bench.sized(60_000, 5_000)
    store = open_store(Settings(home=bench.folder / "lake-home"))
    try:
        bootstrap(store)
        _run(bench, store, rows)
    finally:
        store.close()


def _run(bench: Bench, store: Store, rows: int) -> None:
    logs = Logs()
    bodies = [logs.row(log_id).body for log_id in range(1, rows + 1)]
    received = sum(len(body) for body in bodies)
    squeezed, zstd_s = _timed(lambda: len(pa.Codec("zstd").compress(b"\n".join(bodies))))
    flush_s = 0.0
    small = 0
    for some in _some(bodies, _FLUSH_ROWS):
        _append(store, some)
        flushed, taken = _timed(lambda: flush_logs(store))
        flush_s += taken
        small += flushed.bytes
    # the day is over: all of its files become one
    tomorrow = replace(store, now=lambda: store.now() + ONE_DAY)
    # a merged file gets its index with it: here it comes after, so that each is told apart
    with patch.object(log_compaction, "INDEX_FROM_BYTES", sys.maxsize):
        compacted, compact_s = _timed(lambda: compact_logs(tomorrow))
    indexed, index_s = _timed(lambda: index_logs(tomorrow, from_bytes=0))
    parquet = compacted.bytes_after / received
    whole = (compacted.bytes_after + indexed.words_bytes + indexed.values_bytes) / received
    bench.report(
        "bytes on disk of the JSON received",
        logs=rows,
        json_bytes_per_log=round(received / rows),
        flushed=round(small / received, 3),
        compacted=round(parquet, 3),
        words=round(indexed.words_bytes / received, 3),
        values=round(indexed.values_bytes / received, 3),
        with_index=round(whole, 3),
        yardstick_zstd=round(squeezed / received, 3),
        cpu_us_per_log={
            "flush": round(flush_s / rows * 1e6, 1),
            "compaction": round(compact_s / rows * 1e6, 1),
            "index": round(index_s / rows * 1e6, 1),
        },
        yardstick_zstd_cpu_us_per_log=round(zstd_s / rows * 1e6, 1),
        files_before=compacted.files_before,
        files_after=compacted.files_after,
        target=PARQUET_TARGET,
        target_with_index=WITH_INDEX_TARGET,
        met=parquet <= PARQUET_TARGET and whole <= WITH_INDEX_TARGET,
    )


def _append(store: Store, bodies: Sequence[bytes]) -> None:
    now_us = int(time.time() * 1e6)
    for some in _some(bodies, _GROUP):
        group = [Submission((Entry(1, now_us, body),)) for body in some]
        with store.logs.transaction() as connection:
            append_group(connection, group)


def _some(values: Sequence[bytes], size: int) -> Iterator[list[bytes]]:
    left = iter(values)
    while some := list(islice(left, size)):
        yield some


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what the work does and the CPU seconds of this process and its threads."""
    before = time.process_time()
    done = work()
    return done, time.process_time() - before
