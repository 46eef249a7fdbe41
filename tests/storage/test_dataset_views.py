"""Dataset versions as DuckDB views: each as it was saved, the latest under the group's name."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from api.cli import main
from pipelines.registry import WORK
from pipelines.work import run_operation
from storage.dataset_groups import create_group, delete_group
from storage.dataset_views import group_file_key
from storage.datasets import delete_dataset
from storage.domain.keys import Principal
from storage.draft_rows import add_draft_rows
from storage.drafts import create_draft, save_draft
from storage.operations import list_waiting
from storage.settings import Settings
from storage.sheet_views import publish_sheet_views, sheet_views_due
from storage.store import Store

FIRST, SECOND = [{"q": "one", "n": 1}, {"q": "two"}], [{"other": [True]}]


def save(store: Store, who: Principal, group: int, rows: list[dict[str, Any]]) -> int:
    draft = create_draft(store, who, group_id=group)
    add_draft_rows(store, who, group_id=group, rows=rows)
    save_draft(store, who, group_id=group)
    for one in list_waiting(store):
        run_operation(WORK, store, one.no, one.attempt, "run", lambda _: None)
    return draft.dataset_id


def asked(path: Path, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS d (READ_ONLY)")
        return connection.execute(query).fetchall()


@pytest.fixture
def group(store: Store, who: Principal) -> int:
    return create_group(store, who, name="My Set").id


def test_a_groups_file_shows_each_version_and_the_latest(store: Store, who: Principal, group: int) -> None:
    save(store, who, group, FIRST)
    second = save(store, who, group, SECOND)
    assert sheet_views_due(store) == 1
    assert publish_sheet_views(store) == 1
    path = store.data.path(group_file_key("default", group))
    expected = [(0, "one", 1), (1, "two", None)]
    assert asked(path, 'SELECT * FROM d.datasets."My Set@1" ORDER BY row_index') == expected
    assert asked(path, 'SELECT * FROM d.datasets."My Set"') == [(0, "[true]")]

    delete_dataset(store, who, second)
    publish_sheet_views(store)
    assert asked(path, 'SELECT * FROM d.datasets."My Set" ORDER BY row_index') == expected
    delete_group(store, who, group)
    publish_sheet_views(store)
    assert not path.exists()


def test_the_command_line_knows_them_at_once(
    store: Store, who: Principal, group: int, settings: Settings
) -> None:
    save(store, who, group, FIRST)
    save(store, who, group, SECOND)
    query = """SELECT (SELECT count(*) FROM datasets."My Set@1"), (SELECT count(*) FROM datasets."my set")"""
    done = CliRunner().invoke(main, ["sql", "--home", str(settings.home), "--format", "csv", query])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == "2,1"
