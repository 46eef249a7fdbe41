"""A start that finds the store made does not open it; whatever is in doubt is opened."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from storage.made import is_made
from storage.settings import Settings
from storage.store import opened
from storage.workspaces import bootstrap


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


def test_a_home_without_a_store_is_not_made_and_stays_empty(settings: Settings) -> None:
    assert not is_made(settings)
    assert not settings.root.exists()


def test_a_store_is_made_once_it_has_its_first_workspace(settings: Settings) -> None:
    with opened(settings) as store:
        assert not is_made(settings)
        bootstrap(store)
        assert is_made(settings)
    assert is_made(settings)


@pytest.mark.parametrize("database", ["catalog.sqlite3", "logs.sqlite3"])
def test_a_store_of_another_release_is_opened(settings: Settings, database: str) -> None:
    with opened(settings) as store:
        bootstrap(store)
    with closing(sqlite3.connect(settings.root / database)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999_later'")
    assert not is_made(settings)


def test_a_file_that_is_no_database_is_left_to_those_who_say_what_is_wrong(settings: Settings) -> None:
    with opened(settings) as store:
        bootstrap(store)
    (settings.root / "logs.sqlite3").write_bytes(b"no database" * 100)
    assert not is_made(settings)


def test_databases_named_by_url_are_opened(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", catalog_url=f"sqlite:///{tmp_path / 'elsewhere.sqlite3'}")
    with opened(settings) as store:
        bootstrap(store)
    assert not is_made(settings)
