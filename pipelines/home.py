"""Where the Dagster processes live: home folder, sockets, ports, environment, and how each is started."""

import hashlib
import json
import os
import re
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from pipelines.worker.wire import HostDown, HostSilent, ask
from storage.settings import Settings

LOCATION = "promptlake"
DEFINITIONS = "pipelines.definitions"
# Names the release of Dagster that made the instance; written last, so it says that the instance is whole.
RELEASE_FILE = "release"

# The kernel refuses longer names of unix sockets (108 bytes on Linux, 104 on macOS, both with a closing NUL).
_MAX_SOCKET_BYTES = 100


def instance_yaml(run_launcher: str) -> str:
    """Return the text of the instance's dagster.yaml for a launcher (`warm` or `stock`)."""
    here = Path(__file__).parent
    packaged, in_checkout = here / "dagster.yaml", here.parent / "dagster.yaml"
    text = (packaged if packaged.exists() else in_checkout).read_text()
    if run_launcher == "warm":
        return text
    return re.sub(r"^run_launcher:\n(?:[ ].*\n)+", "", text, flags=re.MULTILINE)


def workspace_yaml(code_port: int) -> str:
    """Return the text of the workspace file (JSON is YAML): one code server for the UI and the daemon."""
    server = {"host": "127.0.0.1", "port": code_port, "location_name": LOCATION}
    return json.dumps({"load_from": [{"grpc_server": server}]}, indent=2) + "\n"


def code_port(settings: Settings) -> int:
    """The code server's port: the one after the UI's."""
    return settings.dagster_port + 1


def run_folder(root: Path) -> Path:
    """Folder of lock, state and sockets of the running processes of a home folder."""
    return root / "run"


def worker_socket(root: Path) -> str:
    """Path of the worker host's socket; in a short private folder where the home's name is too long."""
    path = str(run_folder(root) / "worker.sock")
    if len(os.fsencode(path)) <= _MAX_SOCKET_BYTES:
        return path
    mark = hashlib.sha256(os.fsencode(str(root))).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"promptlake-{os.getuid()}-{mark}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    return str(folder / "worker.sock")


def process_env(settings: Settings, outer: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a Dagster process: the settings, its home, and never the API key."""
    env = {name: text for name, text in outer.items() if name != "PROMPTLAKE_API_KEY"}
    return env | settings.env() | {"DAGSTER_HOME": str(settings.dagster_home), "PYTHONUNBUFFERED": "1"}


def commands(settings: Settings) -> dict[str, list[str]]:
    """Return the command of each Dagster process, by its name."""
    port = str(code_port(settings))
    workspace = str(settings.dagster_home / "workspace.yaml")
    quiet = ["--log-level", "warning"]
    python = [sys.executable, "-m"]
    found = {
        "code-server": [
            *[*python, "dagster", "api", "grpc", "--module-name", DEFINITIONS, "--empty-working-directory"],
            *["--host", "127.0.0.1", "--port", port, "--location-name", LOCATION, *quiet],
        ],
        "dagster-ui": [
            *[
                *python,
                "pipelines.instance.calm",
                "dagster_webserver",
                "--workspace",
                workspace,
                "--host",
                settings.dagster_host,
            ],
            *["--port", str(settings.dagster_port), *quiet],
        ],
        "dagster-daemon": [
            *python,
            "pipelines.instance.calm",
            "dagster._daemon",
            "run",
            "--workspace",
            workspace,
            *quiet,
        ],
        "worker-host": [*python, "pipelines.worker"],
    }
    if settings.run_launcher != "warm":
        del found["worker-host"]
    return found


def worker_is_reachable(settings: Settings) -> bool:
    """Tell whether runs can be handed over: always with the stock launcher, else when the host answers."""
    if settings.run_launcher != "warm":
        return True
    try:
        return bool(ask(worker_socket(settings.root), {"verb": "ping"}, timeout_s=2.0).get("ok"))
    except (HostDown, HostSilent):
        return False


@contextmanager
def hold_databases(dagster_home: Path) -> Iterator[None]:
    """Keep a connection to each SQLite file of the instance open for a block.

    Some processes open a connection a statement. Were one the only one, its end would write the whole log
    back into the file and delete it, with several fsyncs: about 50 ms of every run. A file that cannot be
    read now is left out.
    """
    with ExitStack() as held:
        for path in sorted(dagster_home.glob("*.db")):
            connection = held.enter_context(closing(sqlite3.connect(path)))
            with suppress(sqlite3.Error):
                connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        yield
