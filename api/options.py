"""What the commands share: the option that names the home folder, and the settings of the environment."""

import os
from pathlib import Path
from typing import Any

import click

from storage.settings import SettingError, Settings

HOME = click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that holds everything written (PROMPTLAKE_HOME; default .promptlake).",
)


def settings_of(**overrides: Any) -> Settings:
    """Read the settings of the environment; a bad one ends the command with exit code 2."""
    try:
        return Settings.from_env(os.environ, **overrides)
    except SettingError as error:
        raise click.UsageError(str(error)) from error
