"""The supervisor: one a home folder, restarts what dies, leaves nothing behind and writes nowhere else."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests import stack as stacks
from tests.ports import free_ports
from tests.stack import KEY, Stack, wait_for

REPOSITORY = Path(__file__).parents[2]
IGNORED = {".venv", ".git", ".promptlake", "__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis"}


def listing(folder: Path) -> set[str]:
    """Every file and folder, also empty ones, but for the ignored ones."""
    found = set()
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in IGNORED and not name.endswith(".egg-info")]
        found |= {str(Path(parent, name).relative_to(folder)) for name in [*folders, *files]}
    return found


def command(stack: Stack, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **stack.settings.env(), "PROMPTLAKE_API_KEY": KEY}
    promptlake = str(Path(sys.executable).with_name("promptlake"))
    return subprocess.run(
        [promptlake, *arguments], env=env, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_second_start_on_a_home_folder_in_use_is_refused(stack: Stack) -> None:
    second = command(stack, "up")
    assert second.returncode == 1
    assert f"already runs on {stack.home} (process {stack.process.pid})" in second.stderr
    assert stack.api.get("/ready").status_code == 200


@pytest.mark.parametrize("option", ["--port", "--dagster-port"])
def test_a_port_in_use_is_named_before_anything_starts(stack: Stack, tmp_path: Path, option: str) -> None:
    free = free_ports(3)
    ports = {"--port": free + 2, "--dagster-port": free}
    ports[option] = stack.settings.port
    arguments = [text for name, port in ports.items() for text in (name, str(port))]
    refused = command(stack, "up", "--home", str(tmp_path / "other"), *arguments)
    assert refused.returncode == 1
    assert f"127.0.0.1:{stack.settings.port}" in refused.stderr
    assert option in refused.stderr
    assert not (tmp_path / "other" / "dagster").exists()


@pytest.mark.parametrize(
    ("port", "dagster_port", "named"),
    [
        (8131, 8131, "--dagster-port"),
        (8132, 8131, "code server"),
        (-9, 8131, "-9 is no port"),
        (99_999, 8131, "99999 is no port"),
        (8131, 65_535, "65536 is no port"),
    ],
)
def test_ports_that_are_none_or_each_others_are_refused(
    stack: Stack, tmp_path: Path, port: int, dagster_port: int, named: str
) -> None:
    moved = free_ports(3) - 8131
    ports = {"--port": port, "--dagster-port": dagster_port}
    shown = {name: value + moved if 8000 < value < 9000 else value for name, value in ports.items()}
    arguments = [text for name, value in shown.items() for text in (name, str(value))]
    refused = command(stack, "up", "--home", str(tmp_path / "other"), *arguments)
    assert refused.returncode == 1
    assert named in refused.stderr
    assert "Traceback" not in refused.stderr


def test_readiness_names_each_part(stack: Stack) -> None:
    answer = stack.api.get("/ready").json()
    assert [answer[part] for part in ("catalog", "logs", "dagster", "workers")] == ["ready"] * 4
    names = {process["name"] for process in answer["processes"] if process["state"] == "running"}
    assert names >= {"api", "code-server", "dagster-ui", "dagster-daemon", "worker-host", "log-writer"}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Stack]:
    """A service for one test, started from a folder that is none of its own."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with stacks.running(tmp_path / "home", cwd=elsewhere) as own:
        yield own


@pytest.mark.slow
def test_sigterm_ends_everything_within_ten_seconds_and_nothing_was_written_elsewhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    before = listing(REPOSITORY)
    with stacks.running(tmp_path / "home", cwd=elsewhere) as own:
        run_id = own.launch_probe(wait_s=60)
        own.wait_status(run_id, "STARTED")
        own.wait_status(own.launch_probe(), "SUCCESS")
        assert own.stop() < 10
    assert listing(REPOSITORY) == before
    assert listing(elsewhere) == set()
    with stacks.running(tmp_path / "home") as again:
        assert again.status(run_id) == "FAILURE"
        assert again.wait_status(again.launch_probe(), "SUCCESS", "FAILURE") == "SUCCESS"
        assert again.stop() < 10


def works(own: Stack) -> bool:
    try:
        run_id = own.launch_probe()
    except AssertionError:
        # The UI has not noticed yet that its code server is another one.
        return False
    return own.wait_status(run_id, "SUCCESS", "FAILURE") == "SUCCESS"


@pytest.mark.slow
def test_every_process_that_is_killed_comes_back_and_work_goes_on(own: Stack) -> None:
    names = ("code-server", "dagster-ui", "dagster-daemon", "worker-host", "webhooks", "api", "log-writer")
    for name in names:
        old = own.pids()[name]
        os.kill(old, signal.SIGKILL)
        wait_for(lambda name=name, old=old: own.pids().get(name, old) != old, 30, f"a new {name}")
        own.wait_ready()

        wait_for(lambda: works(own), 30, f"work after {name} was killed")
    log = (own.home / "up.log").read_text()
    assert log.count("SIGKILL") == len(names)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the next start ends what is left over")
def test_no_process_outlives_a_killed_supervisor(own: Stack) -> None:
    run_id = own.launch_probe(wait_s=60)
    own.wait_status(run_id, "STARTED")
    below = own.tree()[1:]
    assert len(below) >= 7
    own.process.kill()
    own.process.wait()
    _, left = psutil.wait_procs(below, timeout=15)
    assert not left


@pytest.mark.slow
def test_a_start_is_accepted_soon_also_after_a_first_start_was_killed(tmp_path: Path) -> None:
    for pause_s in (0.5, 1.5, 3.0):
        killed = stacks.start(tmp_path / "home")
        time.sleep(pause_s)
        killed.kill_all()
        killed.api.close()
    started = time.monotonic()
    with stacks.running(tmp_path / "home") as own:
        assert time.monotonic() - started < 60
        assert own.wait_status(own.launch_probe(), "SUCCESS", "FAILURE") == "SUCCESS"


@pytest.mark.slow
def test_the_stock_launcher_can_be_chosen(tmp_path: Path) -> None:
    with stacks.running(tmp_path / "home", env={"PROMPTLAKE_RUN_LAUNCHER": "stock"}) as own:
        run_id = own.launch_probe()
        assert own.wait_status(run_id, "SUCCESS", "FAILURE") == "SUCCESS"
        assert "worker-host" not in own.pids()
        assert own.stop() < 10


@pytest.mark.slow
def test_a_home_folder_with_a_long_name_works(tmp_path: Path) -> None:
    with stacks.running(tmp_path / ("long-" * 24)) as own:
        assert own.wait_status(own.launch_probe(), "SUCCESS", "FAILURE") == "SUCCESS"
        assert own.stop() < 10
