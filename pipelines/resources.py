"""The store as Dagster resource: opened once a process, from the settings of the environment."""

import os
from functools import lru_cache

from dagster import ConfigurableResource

from storage.settings import Settings
from storage.store import Store, open_store


@lru_cache(maxsize=1)
def process_store() -> Store:
    """Return this process's store; it lives as long as the process."""
    return open_store(Settings.from_env(os.environ))


class StoreResource(ConfigurableResource["StoreResource"]):
    """Hands the process's store to assets, sensors and checks."""

    def open(self) -> Store:
        return process_store()
