"""What a data engineer finds in Dagster, and what its sensors decide, on a real instance."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from dagster import DagsterInstance, SensorResult, SkipReason, build_sensor_context

from pipelines import resources
from pipelines.definitions import defs
from pipelines.defs.checks import log_indexes_are_whole, log_segments_are_whole, sheet_segments_are_whole
from pipelines.defs.log_index import index_sensor
from pipelines.defs.log_partitions import compaction_sensor
from pipelines.defs.maintenance import delete_partitions
from pipelines.defs.operations import outbox
from pipelines.defs.request_logs import flush_sensor
from pipelines.defs.sheet_upkeep import upkeep_sensor
from pipelines.defs.sheet_views import views_sensor
from pipelines.defs.webhooks import overdue_webhooks
from storage.dataset_groups import create_group, delete_group
from storage.domain.keys import Principal
from storage.sheets import delete_sheet
from storage.store import Store
from storage.tables import create_table
from tests.importing import imported_sheet

FOUND = """\
asset dataset_versions [dataset_groups]
asset request_log_index
asset request_log_partitions [log_days]
asset request_log_retention
asset request_log_segments
asset request_log_summary [log_days]
asset request_log_tail
asset sheet_column [sheets]
asset sheet_compactions [sheets]
asset sheet_model_answers [sheets] in pool model_calls
asset sheet_recalculation [sheets]
asset sheet_snapshots [sheets]
asset sheet_views
asset swept_store
asset webhook_deliveries
check request_log_index:log_indexes_are_whole
check request_log_partitions:log_rows_are_counted
check request_log_segments:log_segments_are_whole
check request_log_segments:logs_are_flushed
check sheet_snapshots:sheet_segments_are_whole
job ask_models
job check_request_logs
job compact_request_logs
job compact_sheets
job flush_request_logs
job forget_request_logs
job import_sheet
job index_request_logs
job probe
job publish_sheet_views
job recalculate_sheet
job retention
job summarize_request_logs
job sweep
job verify_segments
job webhooks
job write_dataset
schedule check_request_logs_hourly 5 * * * *
schedule forget_request_logs_daily 40 2 * * *
schedule retention_daily 10 3 * * *
schedule summarize_request_logs_daily 20 0 * * *
schedule sweep_daily 25 3 * * *
schedule verify_segments_daily 40 3 * * *
schedule webhooks_daily 55 3 * * *
sensor canceled_runs every 60 s
sensor compaction every 30 s
sensor failed_runs every 60 s
sensor flush every 15 s
sensor index every 30 s
sensor outbox every 15 s
sensor overdue_webhooks every 60 s
sensor sheet_upkeep every 60 s
sensor sheet_views every 30 s
"""


@pytest.fixture
def instance(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[DagsterInstance]:
    """A Dagster instance beside the test's store, which the definitions use."""
    for name, text in store.settings.env().items():
        monkeypatch.setenv(name, text)
    resources.process_store.cache_clear()
    (tmp_path / "instance").mkdir()
    with DagsterInstance.local_temp(str(tmp_path / "instance")) as instance:
        yield instance
    resources.process_store().close()
    resources.process_store.cache_clear()


def test_the_graph_of_assets_and_what_moves_it() -> None:
    repository = defs.get_repository_def()
    found = []
    for key, node in ((node.key, node) for node in repository.asset_graph.asset_nodes):
        partitions = getattr(node.partitions_def, "name", None)
        pools = "".join(f" in pool {pool}" for pool in sorted(node.pools or ()))
        found.append(f"asset {key.to_user_string()}" + (f" [{partitions}]" if partitions else "") + pools)
    found += [f"check {key.to_user_string()}" for key in repository.asset_graph.asset_check_keys]
    found += [f"job {name}" for name in repository.job_names if not name.startswith("__")]
    found += [f"schedule {one.name} {one.cron_schedule}" for one in repository.schedule_defs]
    found += [f"sensor {one.name} every {one.minimum_interval_seconds} s" for one in repository.sensor_defs]
    assert "\n".join(sorted(found)) + "\n" == FOUND


def test_every_job_executes_in_the_process_of_its_run() -> None:
    repository = defs.get_repository_def()
    assert {job.executor_def.name for job in repository.get_all_jobs()} == {"in_process"}


def test_sensors_say_in_words_why_they_do_nothing(instance: DagsterInstance) -> None:
    for one in (
        outbox,
        flush_sensor,
        compaction_sensor,
        index_sensor,
        upkeep_sensor,
        views_sensor,
        overdue_webhooks,
    ):
        answer = one(build_sensor_context(instance=instance))
        skipped = answer.skip_reason if isinstance(answer, SensorResult) else answer
        assert isinstance(skipped, SkipReason)
        assert skipped.skip_message


def test_a_sheet_has_a_partition_from_its_making_until_it_cannot_come_back(
    instance: DagsterInstance, store: Store, who: Principal
) -> None:
    def tick(cursor: str | None) -> SensorResult:
        answer = upkeep_sensor(build_sensor_context(instance=instance, cursor=cursor))
        assert isinstance(answer, SensorResult)
        for request in answer.dynamic_partitions_requests or ():
            instance.add_dynamic_partitions("sheets", list(request.partition_keys))
        return answer

    table = create_table(store, who)
    first = tick(None)
    one, other = (imported_sheet(store, who, table.id, ["a"], [["x"]]) for _ in range(2))
    second = tick(first.cursor)
    assert len(instance.get_dynamic_partitions("sheets")) == 3
    assert not tick(second.cursor).dynamic_partitions_requests
    delete_sheet(store, who, table_id=table.id, sheet_id=one.id)
    assert delete_partitions(instance, store) == 0
    later = replace(store, now=lambda: store.now() + timedelta(days=8))
    assert delete_partitions(instance, later) == 1
    kept = instance.get_dynamic_partitions("sheets")
    assert str(one.id) not in kept
    assert str(other.id) in kept


def test_a_dataset_group_that_is_deleted_has_no_partition_any_more(
    instance: DagsterInstance, store: Store, who: Principal
) -> None:
    groups = [create_group(store, who, name=name).id for name in ("a", "b")]
    instance.add_dynamic_partitions("dataset_groups", [*map(str, groups), "by hand"])
    delete_group(store, who, groups[0])
    assert delete_partitions(instance, store) == 2
    assert instance.get_dynamic_partitions("dataset_groups") == [str(groups[1])]


def test_checks_of_an_empty_store_pass(instance: DagsterInstance) -> None:
    for check in (log_indexes_are_whole, log_segments_are_whole, sheet_segments_are_whole):
        assert check(store=resources.StoreResource()).passed
