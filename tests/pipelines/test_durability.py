import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from pipelines.durability import spare_syncs
from storage.store import Store

FULL, NORMAL = 2, 1


def synchronous(path: Path) -> int:
    engine = sa.create_engine(f"sqlite:///{path}", poolclass=NullPool)
    with engine.connect() as connection:
        return int(connection.exec_driver_sql("PRAGMA synchronous").scalar_one())


def test_only_the_files_of_the_dagster_home_wait_less_for_the_disk(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spare_syncs()
    spare_syncs()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    for folder in ("dagster", "other"):
        (tmp_path / folder).mkdir()
        with closing(sqlite3.connect(tmp_path / folder / "runs.db")) as made:
            made.execute("PRAGMA journal_mode=WAL")
    assert synchronous(tmp_path / "dagster" / "runs.db") == NORMAL
    assert synchronous(tmp_path / "other" / "runs.db") == FULL
    with store.catalog.transaction() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == FULL
