"""The daily summary of the logs: what the asset `request_log_summary` does."""

from datetime import date

from pipelines.background import in_background
from storage.domain.log_summary import DaySummary
from storage.log_summary import summarize_day
from storage.store import Store

__all__ = ["DaySummary", "run_summary"]


def run_summary(store: Store, day: date) -> DaySummary:
    """Sum up the logs of a day (UTC) by model and by hour."""
    return in_background(lambda: summarize_day(store, day))
