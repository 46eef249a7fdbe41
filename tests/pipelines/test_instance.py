"""The Dagster instance at first start: made whole by one process, whatever kills it."""

import os
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from storage.settings import Settings


def make(settings: Settings, *, kill_after_s: float | None = None) -> int:
    """Run the first start's process, or kill it on the way."""
    env = {**os.environ, **settings.env()}
    process = subprocess.Popen([sys.executable, "-m", "pipelines.instance.make"], env=env)
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        process.kill()
    return process.wait()


def is_whole(settings: Settings) -> bool:
    """Every database has one revision, as Dagster wants it."""
    versions = []
    for name in ("runs", "event_log", "schedules"):
        with closing(sqlite3.connect(settings.dagster_home / f"{name}.db")) as connection:
            versions.append(len(connection.execute("SELECT * FROM alembic_version").fetchall()))
    return versions == [1, 1, 1]


def test_the_instance_stands_in_the_home_folder_and_is_kept(settings: Settings) -> None:
    assert make(settings) == 0
    assert is_whole(settings)
    marker = (settings.dagster_home / "runs.db").stat().st_ino
    assert make(settings) == 0
    assert (settings.dagster_home / "runs.db").stat().st_ino == marker
    assert not settings.dagster_home.with_name("dagster.new").exists()


@pytest.mark.slow
def test_starts_at_once_make_one_instance(settings: Settings) -> None:
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: make(settings), range(4))) == [0, 0, 0, 0]
    assert is_whole(settings)


@pytest.mark.slow
def test_a_first_start_that_was_killed_is_repaired_by_the_next(settings: Settings) -> None:
    for tenths in range(4, 24, 2):
        home = Settings(home=settings.home.with_name(f"home-{tenths}"))
        make(home, kill_after_s=tenths / 10)
        assert make(home) == 0
        assert is_whole(home)
