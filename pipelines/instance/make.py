"""Make or upgrade the Dagster instance: one process, alone, before any other opens it.

Dagster processes that open a fresh SQLite instance together corrupt it for ever. So the instance is
made in a folder of its own and takes its place by one rename: it is there whole, or not at all. Before the
rename nothing waits for the disk: making the schemas did so 250 times, half a minute where each takes 100 ms.
"""

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import dagster
import sqlalchemy as sa
from dagster import DagsterInstance
from sqlalchemy.pool import ConnectionPoolEntry

from pipelines.home import RELEASE_FILE, code_port, instance_yaml, workspace_yaml
from storage.engine.data_root import sync_file, sync_folder
from storage.settings import Settings


def make_instance(settings: Settings) -> None:
    """Leave an instance of this release in the home folder, whatever an earlier start left there."""
    home = settings.dagster_home
    home.parent.mkdir(parents=True, exist_ok=True)
    with _alone(home.parent / "dagster.lock"):
        if not (home / RELEASE_FILE).exists():
            _make(home, settings)
        _write(home / "dagster.yaml", instance_yaml(settings.run_launcher))
        _write(home / "workspace.yaml", workspace_yaml(code_port(settings)))
        if (home / RELEASE_FILE).read_text() != dagster.__version__:
            _open_once(home, upgrade=True)
            _write(home / RELEASE_FILE, dagster.__version__)


def _make(home: Path, settings: Settings) -> None:
    fresh = home.with_name("dagster.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    _write(fresh / "dagster.yaml", instance_yaml(settings.run_launcher))
    with _sparing_the_disk():
        _open_once(fresh, upgrade=True)
    _write(fresh / RELEASE_FILE, dagster.__version__)
    for path in fresh.iterdir():
        sync_file(path)
    sync_folder(fresh)
    if home.exists():
        # Not made by a start of ours: kept aside for a person to look at.
        old = (home.with_name(f"dagster.old-{number}") for number in count(1))
        home.rename(next(path for path in old if not path.exists()))
    fresh.rename(home)
    sync_folder(home.parent)


@contextmanager
def _sparing_the_disk() -> Iterator[None]:
    """Let no connection of a block wait for the disk: what it writes is worth nothing until it is synced."""
    sa.event.listen(sa.Engine, "connect", _spare)
    try:
        yield
    finally:
        sa.event.remove(sa.Engine, "connect", _spare)


def _spare(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    connection.execute("PRAGMA synchronous=OFF")


def _open_once(home: Path, *, upgrade: bool) -> None:
    os.environ["DAGSTER_HOME"] = str(home)
    with DagsterInstance.get() as instance:
        if upgrade:
            instance.upgrade()


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text)
    temporary.replace(path)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def main() -> None:
    """Make the instance of the home folder that the environment names."""
    make_instance(Settings.from_env(os.environ))


if __name__ == "__main__":
    main()
