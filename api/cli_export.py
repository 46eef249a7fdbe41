"""`promptlake export`: logs or a sheet as a file."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import click

from api.cli_store import open_store_or_exit
from api.options import HOME
from storage.domain.errors import Invalid, NotFound
from storage.domain.filters import EVERYTHING, Group, parse_filter_group
from storage.log_export import Format, plan_log_export
from storage.sheet_export import plan_titled_export
from storage.store import Store
from storage.workspaces import DEFAULT_WORKSPACE

REQUEST_LOGS = "request-logs"
FORMATS = ("parquet", "csv", "jsonl")


@click.command()
@HOME
@click.option("--workspace", default=DEFAULT_WORKSPACE, show_default=True)
@click.option("--filter", "filter_text", metavar="JSON", help="A filter group, as the search takes it.")
@click.option(
    "--format", "kind", type=click.Choice(FORMATS), help="Default: by the name of the output, else jsonl."
)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Default: standard output.")
@click.option("--version", type=click.IntRange(1), help="A sheet as this version had it.")
@click.argument("what", metavar=f"{REQUEST_LOGS}|TABLE/SHEET")
def export(
    home: Path | None,
    workspace: str,
    filter_text: str | None,
    kind: str | None,
    output: Path | None,
    version: int | None,
    what: str,
) -> None:
    """Write logs with their scores, or a sheet named as TABLE/SHEET, exact to the last answered change."""
    if what != REQUEST_LOGS:
        if "/" not in what:
            raise click.UsageError(f"What can be exported is {REQUEST_LOGS} or TABLE/SHEET, not {what}")
        if filter_text is not None:
            raise click.UsageError("--filter chooses logs; a sheet is written whole")
        with open_store_or_exit(home) as store:
            _export_sheet(store, workspace, what, chosen_format(kind, output), version, output)
        return
    if version is not None:
        raise click.UsageError("--version is of a sheet")
    group, chosen = _group(filter_text), chosen_format(kind, output)
    with open_store_or_exit(home) as store:
        _export_logs(store, workspace, group, chosen, output)


def chosen_format(kind: str | None, output: Path | None) -> Format:
    """The format asked for, else the one that the file's name says, else JSON lines.

    Raises:
        UsageError: Parquet without a file.
    """
    suffix = "" if output is None else output.suffix.removeprefix(".").lower()
    found = kind or (suffix if suffix in FORMATS else "jsonl")
    if found == "parquet" and output is None:
        raise click.UsageError("Parquet needs a file: --output FILE.parquet")
    return cast("Format", found)


def _group(text: str | None) -> Group:
    if text is None:
        return EVERYTHING
    try:
        return parse_filter_group(json.loads(text))
    except ValueError as error:
        raise click.UsageError(f"--filter is no JSON: {error}") from error
    except Invalid as error:
        raise click.UsageError(f"--filter: {error.message}") from error


def _export_logs(store: Store, workspace: str, group: Group, kind: Format, output: Path | None) -> None:
    found = plan_log_export(store, workspace, group)
    try:
        with click.progressbar(length=found.rows, label="logs", file=sys.stderr) as bar:
            count = found.write(kind, sys.stdout if output is None else output, bar.update)
    except OSError as error:
        raise click.ClickException(f"The output cannot be written: {error.strerror}") from error
    click.echo(f"{count} logs exported", err=True)


def _export_sheet(
    store: Store, workspace: str, place: str, kind: Format, version: int | None, output: Path | None
) -> None:
    try:
        found = plan_titled_export(store, workspace, place, version_number=version)
    except NotFound as error:
        raise click.ClickException(error.message) from error
    try:
        with nullcontext(sys.stdout.buffer) if output is None else output.open("wb") as file:
            for piece in found.pieces(kind):
                file.write(piece)
            file.flush()
    except OSError as error:
        raise click.ClickException(f"The output cannot be written: {error.strerror}") from error
    click.echo(f"{found.row_count} rows exported", err=True)
