"""The commands that open the store: manage keys and workspaces, look for faults, ask questions."""

import sys
from datetime import datetime
from pathlib import Path

import click

from api import cli_backup, cli_datasets, cli_export, cli_logs, cli_sql
from api.cli_store import open_store_or_exit
from api.doctor import examine, say
from api.options import HOME, settings_of
from storage import workspaces
from storage.domain.keys import SCOPES, ApiKey
from storage.log_deletion import list_keeping


@click.command()
@HOME
@click.option("--rebuild-logs", is_flag=True, help="Make the manifest of the logs anew from the files.")
@click.option("--rebuild-index", is_flag=True, help="Make the indexes of the logs anew that are lost.")
def doctor(home: Path | None, *, rebuild_logs: bool, rebuild_index: bool) -> None:
    """Look at installation, disk, storage, Dagster and processes; exit with 1 when something is broken."""
    if rebuild_logs or rebuild_index:
        with open_store_or_exit(home, logs_lost=rebuild_logs) as store:
            cli_logs.rebuild(store, manifest=rebuild_logs)
        return
    sys.exit(say(examine(settings_of(home=home))))


@click.group()
def keys() -> None:
    """Make, list, rotate and revoke API keys."""


@keys.command("create")
@HOME
@click.option("--workspace", default=workspaces.DEFAULT_WORKSPACE, show_default=True)
@click.option("--user", default="admin", show_default=True, help="Name of the key's user; made when new.")
@click.option("--email", help="Address of that user.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    default=("admin",),
    show_default=True,
    help=f"One of {', '.join(SCOPES)}.",
)
@click.option("--expires-in-days", type=click.IntRange(min=1))
def keys_create(
    home: Path | None,
    workspace: str,
    user: str,
    email: str | None,
    scopes: tuple[str, ...],
    expires_in_days: int | None,
) -> None:
    """Make a key and print it; it cannot be shown again."""
    with open_store_or_exit(home) as store:
        _, key = workspaces.create_key(
            store, workspace=workspace, user=user, email=email, scopes=scopes, expires_in_days=expires_in_days
        )
    click.echo(key)


@keys.command("list")
@HOME
def keys_list(home: Path | None) -> None:
    """List the keys of all workspaces."""
    with open_store_or_exit(home) as store:
        for key in workspaces.list_keys(store):
            click.echo(_key_line(key))


@keys.command("rotate")
@HOME
@click.argument("key_id", type=int)
def keys_rotate(home: Path | None, key_id: int) -> None:
    """Replace a key by a new one of the same user and scopes, and print it."""
    with open_store_or_exit(home) as store:
        _, key = workspaces.rotate_key(store, key_id)
    click.echo(key)


@keys.command("revoke")
@HOME
@click.argument("key_id", type=int)
def keys_revoke(home: Path | None, key_id: int) -> None:
    """Revoke a key; within a second it is refused everywhere."""
    with open_store_or_exit(home) as store:
        click.echo(_key_line(workspaces.revoke_key(store, key_id)))


def _key_line(key: ApiKey) -> str:
    state = "revoked" if key.revoked_at else f"until {_day(key.expires_at)}" if key.expires_at else "active"
    who = f"{key.user} <{key.email}>" if key.email else key.user
    return f"{key.id}\t{key.prefix}...\t{key.workspace}\t{who}\t{','.join(key.scopes)}\t{state}"


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d")


@click.group("workspaces")
def workspaces_group() -> None:
    """Make and list workspaces; say how long their logs are kept."""


@workspaces_group.command("create")
@HOME
@click.argument("name")
def workspaces_create(home: Path | None, name: str) -> None:
    """Make a workspace; then give it a key with `promptlake keys create --workspace NAME`."""
    with open_store_or_exit(home) as store:
        workspace = workspaces.create_workspace(store, name)
    click.echo(f"{workspace.id}\t{workspace.name}")


@workspaces_group.command("list")
@HOME
def workspaces_list(home: Path | None) -> None:
    """List the workspaces."""
    with open_store_or_exit(home) as store:
        keeping = list_keeping(store)
        for workspace in workspaces.list_workspaces(store):
            days = keeping.get(workspace.id)
            kept = "logs kept for ever" if days is None else f"logs kept for {days} days"
            click.echo(f"{workspace.id}\t{workspace.name}\t{kept}")


for _command in (cli_logs.keep_logs, cli_logs.delete_logs):
    workspaces_group.add_command(_command)


@click.command("sql", cls=cli_sql.QueryCommand)
@HOME
@click.option("--workspace", default=workspaces.DEFAULT_WORKSPACE, show_default=True)
@click.option(
    "--format",
    "kind",
    type=click.Choice(cli_sql.FORMATS),
    help="Default: by the name of the output, else a table.",
)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="File to write (csv or parquet)."
)
@click.argument("query", required=False)
def sql(home: Path | None, workspace: str, kind: str | None, output: Path | None, query: str | None) -> None:
    """Query the logs of a workspace with DuckDB, exact to the last answered log.

    The views are request_logs, scores, scored_request_logs, request_metadata, request_tags and
    request_logs_as_of. Without QUERY statements are read from
    standard input, or asked for at a prompt when that is a terminal.
    """
    chosen = cli_sql.chosen_format(kind, output)
    with open_store_or_exit(home) as store:
        if query is None and sys.stdin.isatty():
            cli_sql.prompt(store, workspace, chosen)
        else:
            text = sys.stdin.read() if query is None else query
            cli_sql.run(store, workspace, text, chosen, output)


COMMANDS: tuple[click.Command, ...] = (
    doctor,
    keys,
    workspaces_group,
    sql,
    cli_datasets.datasets,
    cli_backup.backup,
    cli_backup.restore,
    cli_export.export,
)
