"""The assets of the logs, materialized by Dagster on a real store: what they tell, and what they do not."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from dagster import (
    AssetKey,
    DagsterInstance,
    RunRequest,
    SensorResult,
    build_schedule_context,
    build_sensor_context,
    materialize,
)

from pipelines import resources
from pipelines.defs import due_work
from pipelines.defs.checks import log_rows_are_counted, logs_are_flushed
from pipelines.defs.log_index import index_sensor, request_log_index
from pipelines.defs.log_partitions import compaction_sensor, request_log_partitions
from pipelines.defs.log_retention import request_log_retention
from pipelines.defs.log_summary import request_log_summary, summary_schedule
from pipelines.defs.request_logs import request_log_segments
from storage import log_index
from storage.store import Store
from tests.logs import add_logs, chat


@pytest.fixture
def instance(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[DagsterInstance]:
    for name, text in store.settings.env().items():
        monkeypatch.setenv(name, text)
    monkeypatch.setattr("storage.domain.log_compaction.MERGE_FILES", 2)
    monkeypatch.setattr(log_index.index_logs, "__kwdefaults__", {"from_bytes": 0})
    monkeypatch.setattr(log_index.count_unindexed, "__kwdefaults__", {"from_bytes": 0})
    monkeypatch.setattr(due_work, "worker_is_reachable", lambda _settings: True)
    resources.process_store.cache_clear()
    (tmp_path / "instance").mkdir()
    with DagsterInstance.local_temp(str(tmp_path / "instance")) as instance:
        yield instance
    resources.process_store().close()
    resources.process_store.cache_clear()


def test_from_the_tail_to_segments_to_partitions_to_the_summary(
    instance: DagsterInstance, store: Store
) -> None:
    given = {"store": resources.StoreResource()}

    def told(asset: object, **options: str) -> dict[str, object]:
        result = materialize([asset], instance=instance, resources=given, **options)  # type: ignore[list-item, arg-type]
        assert result.success
        (event,) = result.get_asset_materialization_events()
        metadata = event.materialization.metadata
        return {name: value.value for name, value in metadata.items()}

    for _ in range(2):
        add_logs(store, 5, input=chat("user", "a secret"), model="m1")
        assert told(request_log_segments)["rows"] == 5
    assert index_sensor(build_sensor_context(instance=instance)) == RunRequest()
    assert told(request_log_index)["segments"] == 2
    asked = compaction_sensor(build_sensor_context(instance=instance))
    assert isinstance(asked, SensorResult)
    (run,) = asked.run_requests or ()
    day = store.now().date().isoformat()
    assert run.partition_key == day
    instance.add_dynamic_partitions("log_days", [day])
    merged = told(request_log_partitions, partition_key=day)
    assert (merged["files_before"], merged["files_after"], merged["rows_after"]) == (2, 1, 10)
    summary = told(request_log_summary, partition_key=day)
    assert (summary["requests"], summary["errors"]) == (10, 0)
    assert "| `m1` | 10 |" in str(summary["by_model"])
    assert str(summary["by_hour"]).startswith("![](data:image/svg+xml;base64,")
    assert told(request_log_retention)["deleted_rows"] == 0
    for check in (logs_are_flushed, log_rows_are_counted):
        assert check(store=resources.StoreResource()).passed
    logged = json.dumps([str(entry) for entry in instance.all_logs(instance.get_runs()[0].run_id)])
    assert "secret" not in logged
    assert "secret" not in json.dumps([str(summary), str(merged)])
    assert instance.get_latest_materialization_event(AssetKey("request_log_summary"))


def test_the_schedule_asks_for_the_day_that_is_over(instance: DagsterInstance, store: Store) -> None:
    tick = store.now()
    with build_schedule_context(instance=instance, scheduled_execution_time=tick) as context:
        asked = summary_schedule(context)
    assert isinstance(asked, RunRequest)
    day = (tick - timedelta(days=1)).date().isoformat()
    assert asked.partition_key == day
    assert instance.get_dynamic_partitions("log_days") == [day]
