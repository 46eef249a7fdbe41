"""`promptlake backup` and `promptlake restore`."""

from pathlib import Path

import click

from api.cli_store import open_store_or_exit
from api.options import HOME, settings_of
from storage.backup import Backup, BackupRefused, back_up
from storage.backup import restore as restore_backup

_MB = 1_000_000


@click.command()
@HOME
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def backup(home: Path | None, folder: Path) -> None:
    """Back everything up into FOLDER, which is new or empty; the service may run meanwhile."""
    with open_store_or_exit(home) as store:
        try:
            made = back_up(store, folder)
        except OSError as error:
            raise click.ClickException(f"{folder} cannot be written: {error.strerror}") from error
    click.echo(f"{folder}: {_told(made)}")


@click.command()
@HOME
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
def restore(home: Path | None, folder: Path) -> None:
    """Bring the backup in FOLDER back into a home that holds no store yet."""
    settings = settings_of(home=home)
    try:
        restored = restore_backup(folder, settings)
    except BackupRefused as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{settings.root} cannot be written: {error.strerror}") from error
    click.echo(f"{settings.root}: {_told(restored)}; of {restored.made_at}")


def _told(made: Backup) -> str:
    return f"{made.files} files, {made.bytes / _MB:.1f} MB, logs before id {made.next_log_id}"
