"""A home made before folders held more than prompts and tables gets the schema of a new one."""

import sqlite3
from contextlib import closing
from importlib import import_module

from storage.engine.revisions import known_revisions
from storage.settings import Settings
from storage.store import opened
from storage.workspaces import bootstrap


def test_an_older_home_gets_the_schema_of_a_new_one(settings: Settings) -> None:
    with opened(settings) as store:
        bootstrap(store)
    (name,) = (name for name in known_revisions("catalog") if name.endswith("_folder_contents"))
    step = import_module(f"storage.engine.migrations.catalog.versions.{name}")

    def schema() -> set[tuple[str, str]]:
        with closing(sqlite3.connect(settings.root / "catalog.sqlite3")) as connection:
            return set(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))

    fresh = schema()
    with closing(sqlite3.connect(settings.root / "catalog.sqlite3")) as connection, connection:
        for index in step.INDEXES.values():
            connection.execute(f"DROP INDEX {index}")
        for table in reversed(step.TABLES):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("UPDATE alembic_version SET version_num = ?", [step.down_revision])
    assert len(fresh - schema()) >= len(step.TABLES) + len(step.INDEXES)
    with opened(settings):
        assert schema() == fresh
