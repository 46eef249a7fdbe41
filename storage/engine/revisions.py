"""Which schema a release has and which a database has, told without loading the database library."""

import sqlite3
from contextlib import closing
from pathlib import Path

MIGRATIONS = Path(__file__).parent / "migrations"


def known_revisions(branch: str) -> list[str]:
    """The revisions of this release, oldest first: numbered files, so in the order of their names."""
    return sorted(path.stem for path in (MIGRATIONS / branch / "versions").glob("[0-9]*.py"))


def is_current(database: Path, branch: str) -> bool:
    """Tell whether a SQLite file surely has this release's schema; a no may mean: it cannot be told."""
    return _ask(database, "SELECT version_num FROM alembic_version") == [(known_revisions(branch)[-1],)]


def has_workspace(database: Path) -> bool:
    """Tell whether a catalog in a SQLite file surely has a workspace, as the first start makes one."""
    return bool(_ask(database, "SELECT 1 FROM workspaces LIMIT 1"))


def _ask(database: Path, query: str) -> list[tuple[object, ...]]:
    try:
        # not `ro`: a log left by a crash could not be read; not `rwc`: nothing is made here
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=rw", uri=True)) as connection:
            return connection.execute(query).fetchall()
    except sqlite3.Error:
        return []
