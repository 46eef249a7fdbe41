"""A home made by an earlier release opens, and goes on."""

import sqlalchemy as sa

from storage.dataset_groups import create_group
from storage.domain.keys import Principal
from storage.domain.paging import PageRequest
from storage.domain.prompts import Publication
from storage.domain.reports import ReportColumn
from storage.drafts import create_draft
from storage.engine.migrate import stored_revision
from storage.engine.revisions import known_revisions
from storage.log_flush import count_log_rows, find_segment_faults, flush_logs
from storage.log_index import forget_broken_index, index_logs
from storage.model_results import forget_results
from storage.reports import create_report
from storage.row_changes import add_rows
from storage.rows import list_rows
from storage.settings import Settings
from storage.sheet_scores import get_score, make_score
from storage.store import Store, open_store
from storage.tables import create_table, list_tables
from storage.templates import get_template, publish
from tests.importing import imported_sheet
from tests.logs import add_logs

_ADDED = ("manifest_no", "patches", "overlay_cells", "overlay_bytes", "part_count")


def test_sheets_of_a_home_without_overlays_are_read_and_written(
    store: Store, settings: Settings, who: Principal
) -> None:
    table = create_table(store, who)
    sheet = imported_sheet(store, who, table.id, ["a"], [["x"]])
    with store.catalog.transaction() as connection:
        for name in _ADDED:
            connection.execute(sa.text(f"ALTER TABLE snapshots DROP COLUMN {name}"))
        connection.execute(sa.text("DROP TABLE patches"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0001_first_release'"))
    store.close()
    upgraded = open_store(settings)
    place = {"table_id": table.id, "sheet_id": sheet.id}
    page = list_rows(upgraded, who, **place, request=PageRequest(9))
    add_rows(upgraded, who, **place, values=[{page.columns[0].id: "y"}])
    rows = list_rows(upgraded, who, **place, request=PageRequest(9)).page.items
    assert [row.cells[0].value for row in rows] == ["x", "y"]
    assert stored_revision(upgraded.catalog) == known_revisions("catalog")[-1]
    upgraded.close()


def test_a_home_of_prompts_without_snippets_goes_on(store: Store, settings: Settings, who: Principal) -> None:
    with store.catalog.transaction() as connection:
        connection.execute(sa.text("DROP TABLE prompt_includes"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0004_folder_contents'"))
    store.close()
    upgraded = open_store(settings)
    for name, text in (("tone", "Be kind."), ("top", "@@@tone@@@")):
        publish(upgraded, who, Publication(name, {"content": [{"type": "text", "text": text}]}))
    found = get_template(upgraded, who, "top", resolve_snippets=True).blueprint
    assert found["content"] == [{"type": "text", "text": "Be kind."}]
    upgraded.close()


def test_a_home_of_sheets_without_scores_goes_on(store: Store, settings: Settings, who: Principal) -> None:
    table = create_table(store, who)
    sheet = imported_sheet(store, who, table.id, ["a"], [[True]])
    with store.catalog.transaction() as connection:
        connection.execute(sa.text("ALTER TABLE sheets DROP COLUMN score_configuration"))
        for name in ("score", "score_snapshot_no", "score_configuration"):
            connection.execute(sa.text(f"ALTER TABLE sheet_versions DROP COLUMN {name}"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0006_suggestion_calls'"))
    store.close()
    upgraded = open_store(settings)
    place = {"table_id": table.id, "sheet_id": sheet.id}
    assert make_score(upgraded, who, **place).score["row_count"] == 1
    assert get_score(upgraded, who, **place).score["row_count"] == 1
    upgraded.close()


def test_a_home_without_datasets_goes_on(store: Store, settings: Settings, who: Principal) -> None:
    table = create_table(store, who)
    with store.catalog.transaction() as connection:
        connection.execute(sa.text("DROP TABLE dataset_links"))
        connection.execute(sa.text("DROP TABLE datasets"))
        connection.execute(sa.text("DROP INDEX ix_reports_sheet_no"))
        for table_name, column in (
            ("tables", "hidden"),
            ("dataset_groups", "sheet_no"),
            *(("reports", name) for name in ("dataset_id", "columns", "sheet_no", "operation_no")),
        ):
            connection.execute(sa.text(f"ALTER TABLE {table_name} DROP COLUMN {column}"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0009_sheet_upkeep'"))
    store.close()
    upgraded = open_store(settings)
    group = create_group(upgraded, who, name="later")
    create_draft(upgraded, who, group_id=group.id)
    column = ReportColumn("b", "comparison", {"sources": ["a"], "target": 1})
    assert create_report(upgraded, who, dataset_group_id=group.id, name="r", columns=[column]).id == 1
    assert [one.id for one in list_tables(upgraded, who, request=PageRequest(9)).items] == [table.id]
    assert stored_revision(upgraded.catalog) == known_revisions("catalog")[-1]
    upgraded.close()


def test_a_home_without_results_of_models_goes_on(store: Store, settings: Settings, who: Principal) -> None:
    with store.catalog.transaction() as connection:
        connection.execute(sa.text("DROP TABLE model_results"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0011_reports'"))
    store.close()
    upgraded = open_store(settings)
    assert forget_results(upgraded) == 0
    assert stored_revision(upgraded.catalog) == known_revisions("catalog")[-1]
    upgraded.close()


def test_a_home_of_logs_without_days_goes_on(store: Store, settings: Settings) -> None:
    add_logs(store, 2)
    flush_logs(store)
    with store.logs.transaction() as connection:
        for table_name, name in (
            ("log_segments", "from_us"),
            ("log_segments", "to_us"),
            ("log_views", "change"),
        ):
            connection.execute(sa.text(f"ALTER TABLE {table_name} DROP COLUMN {name}"))
        for table_name in ("log_companions", "log_deletions", "log_keeping", "log_manifests", "log_retired"):
            connection.execute(sa.text(f"DROP TABLE {table_name}"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0002_log_patches'"))
    store.close()
    upgraded = open_store(settings)
    add_logs(upgraded, 1)
    flush_logs(upgraded)
    assert find_segment_faults(upgraded) == {}
    assert count_log_rows(upgraded).in_files == 3
    upgraded.close()


def test_a_home_of_indexes_without_checksums_goes_on(store: Store, settings: Settings) -> None:
    add_logs(store, 2)
    flush_logs(store)
    index_logs(store, from_bytes=0)
    with store.logs.transaction() as connection:
        connection.execute(sa.text("ALTER TABLE log_companions DROP COLUMN sha256"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0003_compaction'"))
    store.close()
    upgraded = open_store(settings)
    assert forget_broken_index(upgraded) == 0
    (path,) = upgraded.data.path("").rglob("index/words-*.parquet")
    path.write_bytes(path.read_bytes()[:-9] + b"\0" * 9)
    assert forget_broken_index(upgraded) == 1
    assert index_logs(upgraded, from_bytes=0).segments == 1
    upgraded.close()
