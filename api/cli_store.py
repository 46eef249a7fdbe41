"""The store as a command opens it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from api.options import settings_of
from storage.domain.errors import PromptlakeError
from storage.store import Store, opened


@contextmanager
def open_store_or_exit(home: Path | None, *, logs_lost: bool = False) -> Iterator[Store]:
    """Open the store for a command, as `open_store` does; failures end it with a sentence and exit code 1."""
    settings = settings_of(home=home)
    if not (settings.root / "catalog.sqlite3").exists() and not settings.catalog_url:
        raise click.ClickException(f"{settings.root} holds no store yet: start it once with `promptlake up`")
    try:
        with opened(settings, logs_lost=logs_lost) as store, interruption():
            yield store
    except (PromptlakeError, ValueError) as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def interruption() -> Iterator[None]:
    """Tell Ctrl-C as Python does, also within a query, where DuckDB makes an error of its own of it."""
    try:
        yield
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from error
        raise
