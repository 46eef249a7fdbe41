"""`promptlake up`: takes the home folder, makes the store, says where all is, becomes the supervisor."""

import os
import sys
from typing import NoReturn

import click

from api.home_lock import HomeInUse, HomeLock, PortInUse, bind, end_leftovers
from api.supervisor import check_ports
from storage.domain.errors import PromptlakeError
from storage.made import is_made
from storage.settings import Settings


def start(settings: Settings) -> NoReturn:
    """Replace this process by the supervisor, which holds the lock and the API's port taken here.

    Raises:
        click.ClickException: the home folder or a port is in use, or the store cannot be opened.
    """
    try:
        lock = HomeLock.acquire(settings.root)
        for name in end_leftovers(settings.root):
            click.echo(f"{name} was left over from an earlier start and was ended", err=True)
        check_ports(settings)
        listener = bind(settings.host, settings.port, "--port")
        key = None if is_made(settings) else _make_store(settings)
    except (HomeInUse, PortInUse, PromptlakeError, OSError) as error:
        raise click.ClickException(str(error)) from error
    _say_where(settings, key)
    os.set_inheritable(lock.fd, True)
    os.set_inheritable(listener.fileno(), True)
    env = os.environ | settings.env()
    env.pop("PROMPTLAKE_API_KEY", None)
    # A fresh interpreter: the one that stays for weeks has not loaded the database library.
    command = [sys.executable, "-m", "api.supervisor", "--fd", str(listener.fileno())]
    os.execve(sys.executable, command, env)  # noqa: S606  # our own command


def _make_store(settings: Settings) -> str | None:
    """Make or upgrade the store; return its first key if one was made up."""
    # half a second to load, which later starts are spared
    from storage.store import opened  # noqa: PLC0415
    from storage.workspaces import bootstrap  # noqa: PLC0415

    with opened(settings) as store:
        return bootstrap(store)


def _say_where(settings: Settings, key: str | None) -> None:
    api, ui = _url(settings.host, settings.port), _url(settings.dagster_host, settings.dagster_port)
    click.echo(f"API         {api}")
    click.echo(f"Docs        {api}/docs")
    click.echo(f"Dagster UI  {ui} (about ten seconds later)")
    click.echo(f"Home        {settings.root}")
    if key is not None:
        click.echo(f"API key     {key} (shown once; more with `promptlake keys create`)")
    sys.stdout.flush()


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
