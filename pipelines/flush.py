"""Flushing the logs: what the asset `request_log_segments`, its check and its sensor do."""

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
from storage.store import Store

__all__ = [
    "FlushPlan", "FlushResult", "LeaseRefused", "LogRows", "count_rows", "due_flush", "run_flush",
    "run_sweep", "run_verification", "waiting_s",
]  # fmt: skip

MOST_WAITING_S = 300.0
"""A log that waits longer for its flush is told of, whatever the settings."""


def due_flush(store: Store) -> FlushPlan:
    """What a sensor asks: is a flush or a publication due, and why."""
    return flush_plan(store)


def run_flush(store: Store) -> FlushResult:
    """Flush the tail into segments and publish the views.

    Raises:
        LeaseRefused: another flush is at work; nothing is lost, the next one takes what is left.
        Unavailable: the disk is full.
    """
    # What callers wait for comes first: a flush has time.
    return in_background(lambda: flush_logs(store))


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
