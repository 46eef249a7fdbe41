"""The command line `promptlake`: `up` is at hand, the other commands are loaded when asked for."""

import sys
from typing import Any

import click

from api.options import HOME, settings_of
from api.up import start


class _Commands(click.Group):
    """Loads the commands that open the store only when one is asked for: `up` is in a hurry."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._load()
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands:
            self._load()
        return super().get_command(ctx, cmd_name)

    def _load(self) -> None:
        from api.commands import COMMANDS  # noqa: PLC0415

        for command in COMMANDS:
            self.add_command(command)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="promptlake")
def main() -> None:
    """Self-hosted prompt operations."""


@main.command("up")
@HOME
@click.option("--host", help="Address that the API binds (PROMPTLAKE_HOST).")
@click.option("--port", type=int, help="Port of the API (PROMPTLAKE_PORT; default 8000).")
@click.option(
    "--dagster-port", type=int, help="Port of the Dagster UI (PROMPTLAKE_DAGSTER_PORT; default 3000)."
)
@click.option("--workers", type=click.IntRange(min=1), help="API processes (PROMPTLAKE_WORKERS).")
def up(**overrides: Any) -> None:
    """Start everything: API, Dagster, workers. Ctrl-C or SIGTERM ends all of it."""
    start(settings_of(**overrides))


if __name__ == "__main__":
    sys.exit(main())
