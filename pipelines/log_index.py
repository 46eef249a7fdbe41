"""Indexes of the logs: what the asset `request_log_index` and its sensor do."""

from pipelines.background import in_background
from storage.log_index import IndexResult, count_unindexed, forget_broken_index, index_logs
from storage.store import Store

__all__ = ["IndexResult", "count_waiting", "forget_damaged", "run_indexing"]


def count_waiting(store: Store) -> int:
    """What a sensor asks: how many segments wait for their index."""
    return count_unindexed(store)


def run_indexing(store: Store) -> IndexResult:
    """Make the index of words and the dictionary of values of each segment that lacks them.

    Raises:
        LeaseRefused: another process is at it.
        Unavailable: the disk is full.
    """
    return in_background(lambda: index_logs(store))


def forget_damaged(store: Store) -> int:
    """Read every index whole and forget those that are not as they were made; return of how many segments."""
    return forget_broken_index(store)
