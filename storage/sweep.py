"""Upkeep of sheets' files."""

from datetime import timedelta

from storage.engine.sweep import Swept, sweep_segments
from storage.store import Store

GRACE = timedelta(hours=24)
"""Longer than any import: what is older and not named was left by a crash."""


def sweep_sheets(store: Store, *, grace: timedelta = GRACE) -> Swept:
    """Remove the files of sheets that no commit named within the grace."""
    return sweep_segments(store.catalog, store.data, store.now() - grace)
