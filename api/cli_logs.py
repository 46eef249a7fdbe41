"""Commands over the logs of a workspace: how long they are kept, deleting all of them."""

from pathlib import Path

import click

from api.cli_store import open_store_or_exit
from api.options import HOME
from storage import log_deletion
from storage.log_index import forget_broken_index, index_logs
from storage.log_salvage import rebuild_manifest
from storage.store import Store


@click.command("keep-logs")
@HOME
@click.argument("name")
@click.option("--days", type=click.IntRange(min=1), help="Delete logs that are older, once a day.")
@click.option("--for-ever", is_flag=True, help="Keep all logs (the default).")
def keep_logs(home: Path | None, name: str, days: int | None, *, for_ever: bool) -> None:
    """Set for how many days a workspace keeps its logs."""
    if (days is None) != for_ever:
        raise click.UsageError("Say either --days or --for-ever")
    with open_store_or_exit(home) as store:
        log_deletion.keep_logs(store, name, days)
    click.echo(f"{name} keeps its logs {'for ever' if days is None else f'for {days} days'}")


@click.command("delete-logs")
@HOME
@click.argument("name")
@click.confirmation_option(prompt="All logs of this workspace are deleted for ever. Go on?")
def delete_logs(home: Path | None, name: str) -> None:
    """Delete all logs of a workspace."""
    with open_store_or_exit(home) as store:
        count = log_deletion.delete_all_logs(store, name)
    click.echo(f"{count} logs deleted")


def rebuild(store: Store, *, manifest: bool) -> None:
    """Make the manifest anew from the files where asked, then the indexes that are lost."""
    if manifest:
        rebuilt = rebuild_manifest(store)
        click.echo(f"{rebuilt.files} files named with {rebuilt.rows} logs; {rebuilt.scores} scores came back")
    lost = forget_broken_index(store)
    made = index_logs(store)
    click.echo(f"{lost} indexes were lost; {made.segments} made")
