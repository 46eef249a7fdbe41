"""Is Dagster well: instance, databases, workers. Looks only; nothing is opened through Dagster."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from pipelines.home import RELEASE_FILE, worker_is_reachable
from storage.domain.findings import Finding, failed, ok, warning
from storage.engine.backup_files import files_below
from storage.settings import Settings

_REMAKE = (
    "Stop the service, move `dagster` in the home folder away, start again: only the history of runs is lost."
)


def check_dagster(settings: Settings) -> list[Finding]:
    """Look at the instance in the home folder."""
    home = settings.dagster_home
    if not (home / RELEASE_FILE).exists():
        advice = (
            "`promptlake up` makes it within seconds of its first start; see `logs/dagster-instance.log`."
        )
        return [warning("dagster", "there is no Dagster instance yet", advice)]
    return [_check_release(home), *_check_databases(home)]


def check_workers(settings: Settings) -> Finding:
    """Look at whether runs can be handed to the worker host; for a service that is running."""
    if worker_is_reachable(settings):
        return ok(
            "workers", "the worker host answers" if settings.run_launcher == "warm" else "a process a run"
        )
    return failed(
        "workers",
        "the worker host does not answer; operations wait for it",
        "See `logs/worker-host.log` in the home folder; the supervisor starts it again.",
    )


def _check_release(home: Path) -> Finding:
    made, installed = (home / RELEASE_FILE).read_text().strip(), version("dagster")
    if made == installed:
        return ok("dagster", f"the instance is of Dagster {installed}")
    return warning(
        "dagster",
        f"the instance is of Dagster {made}, installed is {installed}",
        "The next `promptlake up` upgrades it.",
    )


def _check_databases(home: Path) -> Iterator[Finding]:
    for path in sorted(home / name for name in files_below(home) if name.suffix == ".db"):
        damage = _find_damage(path)
        if damage is None:
            yield ok("dagster", f"{path.name} is whole")
        else:
            yield failed("dagster", f"{path.name} is damaged: {damage}", _REMAKE)


def _find_damage(path: Path) -> str | None:
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
            if found != "ok":
                return found
            # processes that made the schema together leave two rows, and no later start mends that
            rows = connection.execute("SELECT count(*) FROM alembic_version").fetchone()[0]
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if rows == 1 else f"{rows} schema revisions"
