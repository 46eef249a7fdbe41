"""Commands that take datasets and reports over to tables."""

from pathlib import Path

import click

from api.cli_store import open_store_or_exit
from api.options import HOME
from storage import workspaces
from storage.dataset_conversion import convert_dataset


@click.group()
def datasets() -> None:
    """Take datasets and reports over to tables."""


@datasets.command("to-sheet")
@HOME
@click.option("--workspace", default=workspaces.DEFAULT_WORKSPACE, show_default=True)
@click.option("--report", "report_id", type=int, help="Also make this report's columns those of the sheet.")
@click.option("--title", help="Title of the table; default: the name of the dataset group.")
@click.argument("dataset_id", type=int)
def to_sheet(
    home: Path | None, workspace: str, report_id: int | None, title: str | None, dataset_id: int
) -> None:
    """Make a table with a sheet of a dataset version's rows, and print its path below /api/public/v2.

    Dataset and report stay as they are. Columns are computed by the running service, or at its next start.
    """
    with open_store_or_exit(home) as store:
        made = convert_dataset(store, workspace, dataset_id, report_id=report_id, title=title)
    click.echo(f"tables/{made.sheet.table_id}/sheets/{made.sheet.id}\t{made.sheet.row_count} rows")
