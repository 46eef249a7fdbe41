"""The command line: help everywhere, sentences for errors, exit codes that scripts can use."""

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner, Result

from api.cli import main
from storage.settings import Settings
from storage.store import Store
from storage.workspaces import find_key


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield (*path, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


def run(settings: Settings, *arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments), env={"PROMPTLAKE_HOME": str(settings.home)})


@pytest.mark.parametrize("path", list(commands(main)), ids=" ".join)
def test_every_command_has_help_that_says_what_it_does(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(main, [*path, "--help"])
    assert shown.exit_code == 0
    assert re.search(r"\n\n  [A-Z].{15}", shown.output), shown.output


def test_a_made_key_works_and_is_listed_without_its_text(store: Store, settings: Settings) -> None:
    made = run(settings, "keys", "create", "--user", "ada", "--scope", "read", "--expires-in-days", "3")
    key = made.output.strip()
    assert made.exit_code == 0
    facts = find_key(store, key)
    assert facts is not None
    assert facts.principal.scopes == {"read"}
    listed = run(settings, "keys", "list").output
    assert "ada" in listed
    assert key[:11] in listed
    assert key not in listed


def test_rotate_and_revoke(store: Store, settings: Settings) -> None:
    new = run(settings, "keys", "rotate", "1").output.strip()
    assert find_key(store, new) is not None
    assert "revoked" in run(settings, "keys", "revoke", "2").output
    again = run(settings, "keys", "rotate", "2")
    assert again.exit_code == 1
    assert "revoked" in again.output


def test_workspaces_are_made_once(store: Store, settings: Settings) -> None:
    assert run(settings, "workspaces", "create", "research").exit_code == 0
    assert run(settings, "workspaces", "create", "research").exit_code == 1
    assert run(settings, "workspaces", "create", "../evil").exit_code == 1
    assert "research" in run(settings, "workspaces", "list").output


def test_a_home_without_a_store_is_named_and_not_made(settings: Settings) -> None:
    answer = run(settings, "keys", "list")
    assert answer.exit_code == 1
    assert "promptlake up" in answer.output
    assert not settings.home.exists()


def test_a_wrong_setting_ends_with_exit_code_2_and_its_name() -> None:
    for name, value in [
        ("PROMPTLAKE_PORT", "eighty"),
        ("PROMPTLAKE_COLOUR", "red"),
        ("PROMPTLAKE_API_KEY", "short"),
    ]:
        answer = CliRunner().invoke(main, ["keys", "list"], env={name: value})
        assert answer.exit_code == 2
        assert name in answer.output
