"""`promptlake doctor`: what is broken is said with what to do, and the exit code follows."""

import fcntl
import json
import sqlite3
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from api.cli import main
from pipelines.home import run_folder
from storage.settings import Settings
from storage.store import Store


def doctor(settings: Settings) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["doctor", "--home", str(settings.root)])
    return result.exit_code, result.output


def dagster_home(settings: Settings, revisions: int = 1) -> Path:
    settings.dagster_home.mkdir(parents=True)
    (settings.dagster_home / "release").write_text(version("dagster"))
    with closing(sqlite3.connect(settings.dagster_home / "runs.db")) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.executemany(
            "INSERT INTO alembic_version VALUES (?)", [(str(n),) for n in range(revisions)]
        )
        connection.commit()
    return settings.dagster_home


def supervised(settings: Settings, *processes: dict[str, Any]) -> Any:
    folder = run_folder(settings.root)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "processes.json").write_text(json.dumps({"supervisor": 1, "processes": processes}))
    held = (folder / "up.lock").open("w")
    fcntl.flock(held, fcntl.LOCK_EX)
    return held


def process(name: str, state: str = "running", restarts: int = 0) -> dict[str, Any]:
    return {
        "name": name,
        "state": state,
        "pid": None,
        "restarts": restarts,
        "last_exit": 1 if restarts else None,
    }


def test_a_service_that_was_never_started_is_not_broken(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "nowhere")
    code, output = doctor(settings)
    assert code == 0
    assert "promptlake up" in output
    assert not settings.root.exists()


def test_a_store_at_rest_is_well(store: Store, settings: Settings) -> None:
    dagster_home(settings)
    code, output = doctor(settings)
    assert code == 0
    assert "the catalog database is whole" in output
    assert "runs.db is whole" in output
    assert "the service is not running" in output
    assert "walls that stand: environment, frames" in output
    assert "FAILED" not in output


def test_a_catalog_that_is_no_database_is_broken(store: Store, settings: Settings) -> None:
    store.close()
    (settings.root / "catalog.sqlite3").write_bytes(b"this is no database" * 500)
    code, output = doctor(settings)
    assert code == 1
    assert "restore" in output


def test_an_instance_that_was_made_twice_is_broken(store: Store, settings: Settings) -> None:
    dagster_home(settings, revisions=2)
    code, output = doctor(settings)
    assert code == 1
    assert "2 schema revisions" in output


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (process("api", "waiting", 3), "api is not running (last exit status 1)"),
        (process("api", "running", 2), "api runs after 2 restarts"),
        (process("api"), "the worker host does not answer"),
    ],
)
def test_processes_of_a_running_service_are_judged(
    store: Store, settings: Settings, found: dict[str, Any], words: str
) -> None:
    with supervised(settings, found):
        code, output = doctor(settings)
    assert words in output
    assert code == 1, "no worker host answers here"


def test_providers_are_told_by_their_keys_and_no_key_is_shown(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-shown")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("PROMPTLAKE_PROVIDERS", "ours=http://127.0.0.1:9/v1")
    _, said = doctor(settings)
    assert "can be asked: stub, openai; without a key: ANTHROPIC_API_KEY, OURS_API_KEY" in said
    assert "sk-not-to-be-shown" not in said
