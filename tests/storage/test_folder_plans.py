"""How the database answers lists and paths: by the index made for it, never by reading a table through."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import product
from typing import Any

import pytest
import sqlalchemy as sa

from storage.datasets import list_datasets
from storage.domain.datasets import DatasetQuery
from storage.domain.entities import EntityType
from storage.domain.keys import Principal
from storage.domain.paging import PageRequest
from storage.domain.workflows import WorkflowQuery
from storage.entities import list_entities
from storage.folders import create_folder, delete_folder, resolve_folder_id
from storage.store import Store
from storage.workflows import list_workflows
from storage.workspaces import create_key, find_key

SOME_DAY = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
def who(store: Store) -> Principal:
    facts = find_key(store, create_key(store, user="ann", email="ann@example.com")[1])
    assert facts is not None
    return facts.principal


def plans_of(store: Store, call: Callable[[], object]) -> list[str]:
    """Run a verb; return how the database answered each statement of it, one line a step."""
    asked: list[tuple[str, Any]] = []

    def listen(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        asked.append((statement, parameters))

    sa.event.listen(store.catalog.engine, "before_cursor_execute", listen)
    try:
        call()
    finally:
        sa.event.remove(store.catalog.engine, "before_cursor_execute", listen)
    steps = []
    with store.catalog.read() as connection:
        for statement, parameters in asked:
            if statement.lstrip().startswith(("SELECT", "WITH")):
                found = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                steps += [str(row[3]) for row in found]
    assert steps
    return steps


def test_a_page_of_workflows_is_read_off_the_index_of_its_order(store: Store, who: Principal) -> None:
    filters: list[dict[str, Any]] = [
        {},
        {"created_by_email": "ann@example.com"},
        {"created_by_email": "ann@example.com", "updated_before": SOME_DAY},
    ]
    for sort, order, filtered in product(
        ("created_at", "updated_at", "name", "id"), ("asc", "desc"), filters
    ):
        query = WorkflowQuery(sort_by=sort, sort_order=order, **filtered)  # type: ignore[arg-type]
        steps = plans_of(store, partial(list_workflows, store, who, query, page=3, per_page=5))
        ours = [step for step in steps if "workflows" in step]
        # its count, its ids: both without the table; then its rows by their ids
        count, ids, rows = ours
        assert "USING COVERING INDEX ix_workflows_by_" in count, (query, steps)
        assert f"USING COVERING INDEX ix_workflows_by_{sort} (workspace_id=? AND deleted_at=?" in ids, steps
        assert "USING INTEGER PRIMARY KEY" in rows, steps
        # nothing is sorted until the page is there
        assert not [step for step in steps[: steps.index(rows)] if "TEMP B-TREE" in step], (query, steps)


def test_datasets_of_a_name_are_counted_by_seeking_their_groups(store: Store, who: Principal) -> None:
    query = DatasetQuery(name="a part")
    count, ids, *_ = [
        step
        for step in plans_of(store, partial(list_datasets, store, who, query, page=1, per_page=5))
        if "datasets" in step
    ]
    assert "USING COVERING INDEX ix_datasets_of_group (dataset_group_id=? AND deleted_at=?" in count
    assert "USING COVERING INDEX ix_datasets_by_created_at (workspace_id=?" in ids


def test_the_contents_of_a_folder_are_read_off_its_index(store: Store, who: Principal) -> None:
    folder = create_folder(store, who, name="f").id
    for place, kinds in product((None, folder), ((), (EntityType.PROMPT,))):
        call = partial(list_entities, store, who, request=PageRequest(5), folder_id=place, kinds=kinds)
        steps = [step for step in plans_of(store, call) if "PRIMARY KEY" not in step]
        assert len(steps) == (len(kinds) or len(EntityType) - 1)
        for step in steps:
            assert step.startswith("SEARCH"), steps
            assert "_folder (folder_id=? AND workspace_id=?" in step or "ix_folders_parent" in step, steps


def test_a_path_is_followed_by_one_query_over_the_index_of_siblings(store: Store, who: Principal) -> None:
    parent = None
    for name in "abc":
        parent = create_folder(store, who, name=name, parent_id=parent).id
    steps = plans_of(store, lambda: resolve_folder_id(store, who, "a.b.c"))
    looked_up = [step for step in steps if "folders" in step]
    assert len(looked_up) == 1, steps
    assert "uq_folders_sibling_name (workspace_id=? AND <expr>=? AND name=?)" in looked_up[0], steps


def test_a_folder_is_found_empty_without_reading_what_others_hold(store: Store, who: Principal) -> None:
    folder = create_folder(store, who, name="f").id
    steps = plans_of(store, lambda: delete_folder(store, who, folder))
    assert not [step for step in steps if step.startswith("SCAN")], steps
