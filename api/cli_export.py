"""`promptlake export`: logs or a sheet as a file."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, cast

import click

from api.cli_output import written_whole
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
    opened = nullcontext(sys.stdout) if output is None else written_whole(output)
    with _unwritable_told(), _progress(found.rows, "logs") as bar, opened as place:
        count = found.write(kind, place, bar.update)
    click.echo(f"{count} logs exported", err=True)


def _export_sheet(
    store: Store, workspace: str, place: str, kind: Format, version: int | None, output: Path | None
) -> None:
    try:
        found = plan_titled_export(store, workspace, place, version_number=version)
    except NotFound as error:
        raise click.ClickException(error.message) from error
    with _unwritable_told(), _progress(found.row_count, "rows") as bar:
        pieces = found.pieces(kind, bar.update)
        if output is None:
            _write(sys.stdout.buffer, pieces)
        else:
            with written_whole(output) as part, part.open("wb") as file:
                _write(file, pieces)
    click.echo(f"{found.row_count} rows exported", err=True)


def _write(file: IO[bytes], pieces: Iterator[bytes]) -> None:
    for piece in pieces:
        file.write(piece)
    file.flush()


def _progress(rows: int, label: str) -> Any:
    hidden = not sys.stderr.isatty()
    return click.progressbar(length=rows, label=label, file=sys.stderr, hidden=hidden)


@contextmanager
def _unwritable_told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # who reads it has seen enough
        raise
    except OSError as error:
        raise click.ClickException(f"The output cannot be written: {error.strerror or error}") from error
