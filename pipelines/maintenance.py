"""Upkeep that nobody waits for."""

from pipelines.work import Outcome
from storage.store import Store
from storage.sweep import sweep_sheets


def sweep_store(store: Store) -> Outcome:
    """Remove what crashes left behind; its facts say how much."""
    swept = sweep_sheets(store)
    return Outcome({"swept_files": swept.files, "swept_bytes": swept.bytes})
