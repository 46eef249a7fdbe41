"""Compaction and retention of the logs: what their assets and the sensor do."""

from datetime import date

from pipelines.background import in_background
from storage.log_compaction import CompactionResult, compact_logs, due_days
from storage.log_deletion import forget_old_logs
from storage.store import Store

__all__ = ["CompactionResult", "find_due_days", "run_compaction", "run_retention"]


def find_due_days(store: Store) -> list[date]:
    """What a sensor asks: which days have small files to merge, or deleted logs to leave out."""
    return due_days(store)


def run_compaction(store: Store, day: date) -> CompactionResult:
    """Rewrite what is due of a day.

    Raises:
        LeaseRefused: another compaction is at work; the next one takes what is left.
        Unavailable: the disk is full.
    """
    return in_background(lambda: compact_logs(store, day))


def run_retention(store: Store) -> dict[int, int]:
    """Delete logs that are older than their workspace keeps them; return how many by workspace."""
    return in_background(lambda: forget_old_logs(store))
