import os
import socket
from pathlib import Path

import pytest

from pipelines.home import commands, instance_yaml, process_env, worker_is_reachable, worker_socket
from pipelines.worker.wire import HostDown, ask
from storage.settings import Settings


def test_a_home_with_a_long_name_gets_a_socket_that_can_be_bound(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 120)
    path = worker_socket(long)
    assert len(os.fsencode(path)) < 104
    assert path == worker_socket(long) != worker_socket(tmp_path / ("y" * 120))
    with socket.socket(socket.AF_UNIX) as listener:
        Path(path).unlink(missing_ok=True)
        listener.bind(path)
    Path(path).unlink()
    assert Path(path).parent.stat().st_mode & 0o077 == 0


def test_the_stock_launcher_is_what_dagster_does_without_ours(settings: Settings) -> None:
    assert "pipelines.launcher" in instance_yaml("warm")
    stock = instance_yaml("stock")
    assert "run_launcher" not in stock
    assert "run_monitoring" in stock
    assert "worker-host" not in commands(Settings(run_launcher="stock"))


def test_no_process_of_dagster_learns_the_first_key(settings: Settings) -> None:
    env = process_env(settings, {"PROMPTLAKE_API_KEY": settings.api_key, "PATH": "/bin"})
    assert settings.api_key not in env.values()
    assert env["DAGSTER_HOME"] == str(settings.dagster_home)


def test_without_a_host_a_caller_knows_at_once(settings: Settings) -> None:
    assert not worker_is_reachable(settings)
    assert worker_is_reachable(Settings(home=settings.home, run_launcher="stock"))
    with pytest.raises(HostDown):
        ask(worker_socket(settings.root), {"verb": "ping"})
