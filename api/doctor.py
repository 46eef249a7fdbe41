"""`promptlake doctor`: looks at everything that the service needs, and says what to do."""

import sqlite3
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

import click

from api.home_lock import PortInUse, is_running, read_state
from api.supervisor import check_ports
from pipelines.doctor import check_dagster, check_workers
from pipelines.providers.check import check_providers
from storage.domain.findings import Finding, failed, ok, warning
from storage.health import check_storage
from storage.sandbox import check_sandbox
from storage.settings import Settings

_MARKS = {"ok": "ok     ", "warning": "warning", "failed": "FAILED "}


def examine(settings: Settings) -> list[Finding]:
    """Look at everything; nothing is changed."""
    return [
        *_check_installation(),
        *check_storage(settings),
        *check_sandbox(),
        check_providers(settings),
        *check_dagster(settings),
        *_check_processes(settings),
    ]


def say(findings: list[Finding]) -> int:
    """Print findings, one a line with its advice below; return the exit code: 1 when something is broken."""
    for finding in findings:
        click.echo(f"{_MARKS[finding.state]}  {finding.part:<12}  {finding.sentence}")
        if finding.advice:
            click.echo(f"{'':23}{finding.advice}")
    broken = sum(finding.state == "failed" for finding in findings)
    click.echo(f"{broken} broken" if broken else "nothing is broken")
    return int(broken > 0)


def _check_installation() -> Iterator[Finding]:
    own = version("promptlake")
    yield ok(
        "installation", f"promptlake {own}, Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}"
    )
    missing = [name for name in _required() if not _is_installed(name)]
    if missing:
        yield failed(
            "installation",
            f"packages are missing: {', '.join(missing)}",
            "Install again: `make env`, or pip.",
        )


def _required() -> list[str]:
    return [name.partition("[")[0] for name in requires("promptlake") or [] if ";" not in name]


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _check_processes(settings: Settings) -> Iterator[Finding]:
    if not is_running(settings.root):
        yield warning("processes", "the service is not running", "Start it: `promptlake up`.")
        try:
            check_ports(settings)
        except PortInUse as error:
            yield warning("processes", f"a port that it needs is taken: {error}", "Or end what holds it.")
        return
    yield from (_judge(process) for process in read_state(settings.root))
    yield check_workers(settings)


def _judge(process: dict[str, Any]) -> Finding:
    name, restarts = process["name"], process["restarts"]
    log = f"See `logs/{name}.log` in the home folder."
    if process["state"] == "waiting":
        last = f" (last exit status {process['last_exit']})" if process["last_exit"] is not None else ""
        return failed("processes", f"{name} is not running{last}", log)
    if restarts:
        return warning("processes", f"{name} runs after {restarts} restarts", log)
    return ok("processes", f"{name} {'runs' if process['state'] == 'running' else 'is done'}")
