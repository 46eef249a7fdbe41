"""The worker host: `python -m pipelines.worker`, with DAGSTER_HOME and settings in the environment."""

import gc
import logging
import os
from pathlib import Path

from dagster import DagsterInstance

from pipelines.home import worker_socket
from pipelines.worker.host import Host
from pipelines.worker.lanes import Limits
from pipelines.worker.ledger import Ledger
from storage.settings import Settings


def main() -> None:
    """Serve until SIGTERM."""
    settings = Settings.from_env(os.environ)
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    limits = Limits.of(settings.max_run_processes, os.cpu_count() or 1)
    path = worker_socket(Path(os.environ["DAGSTER_HOME"]).parent)
    with DagsterInstance.get() as instance:
        # What is loaded by now is shared by every child; the collector must not write to those pages.
        gc.collect()
        gc.freeze()
        Host(path, limits, Ledger(instance)).serve()


if __name__ == "__main__":
    main()
