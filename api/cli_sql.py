"""`promptlake sql`: one query, a script on standard input, or a prompt."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from api.cli_output import written_whole
from api.cli_store import interruption
from storage.sql import AdHoc, QueryError, open_ad_hoc, split_statements
from storage.store import Store

FORMATS = ("table", "csv", "parquet")
_PROMPT_ROWS, _PIPE_ROWS, _PIPE_WIDTH = 40, 10_000, 1_000
_HISTORY_LINES = 1000


class QueryCommand(click.Command):
    """A command whose text may begin with a comment: `-- why` is no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(
            ctx, [f" {arg}" if arg.startswith(("-- ", "--\n")) else arg for arg in args]
        )


def answer(store: Store, workspace: str, query: str, kind: str, output: Path | None) -> None:
    """Run one statement and write its answer.

    Raises:
        QueryError: it has no meaning, or does more than read.
        OSError: the output cannot be written.
    """
    with open_ad_hoc(store, workspace, query) as views:
        if output is not None:
            with written_whole(output) as part:
                _write(views, query, kind, part)
        elif kind == "csv":
            views.write_csv(query, sys.stdout)
        else:
            views.show(query, **_table_size())


def _write(views: AdHoc, query: str, kind: str, path: Path) -> None:
    if kind == "parquet":
        views.write_parquet(query, path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            views.write_csv(query, file)


def _table_size() -> dict[str, int]:
    if not sys.stdout.isatty():
        return {"max_rows": _PIPE_ROWS, "max_width": _PIPE_WIDTH}
    return {"max_rows": _PROMPT_ROWS, "max_width": shutil.get_terminal_size().columns}


def chosen_format(kind: str | None, output: Path | None) -> str:
    """The format asked for, else the one that the file's name says, else a table.

    Raises:
        UsageError: the format and the output do not go together.
    """
    suffix = "" if output is None else output.suffix.removeprefix(".").lower()
    found = kind or (suffix if suffix in FORMATS else "csv" if output else "table")
    if found == "parquet" and output is None:
        raise click.UsageError("Parquet needs a file: --output FILE.parquet")
    if found == "table" and output is not None:
        raise click.UsageError("A table is printed; write a file as csv or parquet")
    return found


def run(store: Store, workspace: str, query: str, kind: str, output: Path | None) -> None:
    """Run the statements of a text; a file takes the answer of one."""
    with refused():
        statements = split_statements(query)
        if not statements:
            raise QueryError("There is no query")
        if len(statements) > 1 and output is not None:
            raise QueryError("A file takes the answer of one statement")
        for statement in statements:
            answer(store, workspace, statement, kind, output)


@contextmanager
def refused() -> Iterator[None]:
    """End the command with a sentence and exit code 1."""
    try:
        yield
    except QueryError as error:
        raise click.ClickException(str(error)) from error
    except BrokenPipeError:  # who reads it has seen enough
        raise
    except OSError as error:
        raise click.ClickException(f"The output cannot be written: {error.strerror or error}") from error


def prompt(store: Store, workspace: str, kind: str) -> None:
    """Read statements, each up to its `;`, until the end of the input or `.quit`."""
    click.echo(f"Workspace {workspace}: request_logs, scores, request_logs_as_of. End a query with `;`.")
    with _history(store.settings.root / "sql_history"):
        for text in _statements():
            try:
                with interruption():
                    run(store, workspace, text, kind, None)
            except click.ClickException as error:
                error.show()
            except KeyboardInterrupt:  # ends the query, not the prompt
                click.echo("Interrupted", err=True)


def _statements() -> Iterator[str]:
    lines: list[str] = []
    while True:
        try:
            line = input("... " if lines else "sql> ")
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:  # forgets what was typed, as in a shell
            click.echo()
            lines = []
            continue
        if not lines and line.strip() in {".quit", ".exit", "quit", "exit"}:
            return
        if line.strip() or lines:
            lines.append(line)
        if line.rstrip().endswith(";"):
            yield "\n".join(lines)
            lines = []


@contextmanager
def _history(file: Path) -> Iterator[None]:
    readline: Any = None
    with suppress(ImportError):  # Python may be built without it: then there is no history
        import readline  # noqa: PLC0415
    if readline is None:
        yield
        return
    with suppress(FileNotFoundError):
        readline.read_history_file(file)
    readline.set_history_length(_HISTORY_LINES)
    try:
        yield
    finally:
        readline.write_history_file(file)
