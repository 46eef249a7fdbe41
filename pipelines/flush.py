"""Flushing the logs: what the asset `request_log_segments`, its check and its sensor do."""

import time
from contextlib import suppress

from pipelines.background import in_background
from storage.domain.log_flush import FlushPlan
from storage.leases import LeaseRefused
from storage.log_flush import (
    FlushResult,
    LogRows,
    count_log_rows,
    find_segment_faults,
    flush_logs,
    flush_plan,
    oldest_waiting_s,
    publish_views,
    sweep_log_files,
)
from storage.log_pace import is_filling, much_bytes, staying, steps_back, waiting_bytes
from storage.store import Store

__all__ = [
    "FlushPlan", "FlushResult", "LeaseRefused", "LogRows", "count_rows", "due_flush", "run_flush",
    "run_sweep", "run_verification", "waiting_s",
]  # fmt: skip

STAYS_S = 240.0
"""How long a flush stays at work while the tail fills fast."""
PATIENCE_S = 6.0
_LOOK_EVERY_S = 0.5
MOST_WAITING_S = 300.0
"""A log that waits longer for its flush is told of, whatever the settings."""


def due_flush(store: Store) -> FlushPlan:
    """What a sensor asks: is a flush or a publication due, and why."""
    return flush_plan(store)


def run_flush(store: Store) -> FlushResult:
    """Flush the tail into segments and publish the views; under load, again and again for some minutes.

    Raises:
        LeaseRefused: another flush is at work; nothing is lost, the next one takes what is left.
        Unavailable: the disk is full.
    """
    busy = is_filling(store)
    result = _flush(store)
    return _stay(store, result) if busy else result


def _stay(store: Store, result: FlushResult) -> FlushResult:
    """A sensor looks too seldom for a tail that fills in seconds: a flush that found much looks itself."""
    until = time.monotonic() + STAYS_S
    with suppress(LeaseRefused), staying(store) as stay_on:  # another flush came: this one need not stay
        while time.monotonic() < until and _fills_soon(store):
            result = result.plus(_flush(store))
            stay_on()
    return result


def _fills_soon(store: Store) -> bool:
    much = much_bytes(store.settings)
    for _ in range(int(PATIENCE_S / _LOOK_EVERY_S)):
        if waiting_bytes(store) >= much:
            return True
        time.sleep(_LOOK_EVERY_S)
    return False


def _flush(store: Store) -> FlushResult:
    # what callers wait for comes first, as long as the flush keeps pace
    return in_background(lambda: flush_logs(store), steps_back(store))


def run_publication(store: Store) -> int:
    """Publish all views anew; return how many files."""
    return publish_views(store, everything=True)


def run_verification(store: Store) -> dict[str, str]:
    """Compare every segment with the manifest; faults by key, empty when all is well."""
    return find_segment_faults(store)


def run_sweep(store: Store) -> int:
    """Remove files that nothing names; return how many."""
    return sweep_log_files(store)


def waiting_s(store: Store) -> tuple[float, float]:
    """For how many seconds the oldest log has waited for its flush, and how many it may wait."""
    return oldest_waiting_s(store), max(MOST_WAITING_S, 10 * store.settings.flush_after_s)


def count_rows(store: Store) -> LogRows:
    """Compare the number of logs in the manifest with that in its files."""
    return count_log_rows(store)
