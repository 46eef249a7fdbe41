"""Asset checks: what stands in the data folder is what the catalog says, byte for byte."""

from collections.abc import Mapping
from dataclasses import asdict

from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetSelection,
    DefaultScheduleStatus,
    MetadataValue,
    ScheduleDefinition,
    asset_check,
    define_asset_job,
    in_process_executor,
)

from pipelines import flush, log_index, maintenance
from pipelines.defs.log_index import request_log_index
from pipelines.defs.log_partitions import request_log_partitions
from pipelines.defs.request_logs import request_log_segments
from pipelines.defs.sheets import sheet_snapshots
from pipelines.resources import StoreResource

_SHOWN = 100


@asset_check(asset=request_log_segments, description="Every segment of logs is as it was written.")
def log_segments_are_whole(store: StoreResource) -> AssetCheckResult:
    """Compare the files of logs with their manifest."""
    return _result(flush.run_verification(store.open()))


@asset_check(asset=request_log_index, description="Every index of logs is as it was made.")
def log_indexes_are_whole(store: StoreResource) -> AssetCheckResult:
    """Compare indexes with their checksums; the next indexing makes anew what is not as it was."""
    damaged = log_index.forget_damaged(store.open())
    return AssetCheckResult(
        passed=not damaged,
        severity=AssetCheckSeverity.WARN,
        metadata={"made_anew": MetadataValue.int(damaged)},
    )


@asset_check(asset=sheet_snapshots, description="Every segment of a sheet is as it was written.")
def sheet_segments_are_whole(store: StoreResource) -> AssetCheckResult:
    """Compare the files of sheets with the catalog."""
    return _result(maintenance.verify_sheets(store.open()))


@asset_check(asset=request_log_segments, description="No log waits much longer for its flush than it should.")
def logs_are_flushed(store: StoreResource) -> AssetCheckResult:
    """Look how old the oldest waiting log is."""
    waiting_s, most_s = flush.waiting_s(store.open())
    return AssetCheckResult(
        passed=waiting_s <= most_s,
        severity=AssetCheckSeverity.WARN,
        metadata={"waiting_s": MetadataValue.float(waiting_s), "most_s": MetadataValue.float(most_s)},
    )


@asset_check(
    asset=request_log_partitions, description="The files hold each log that the manifest names, once."
)
def log_rows_are_counted(store: StoreResource) -> AssetCheckResult:
    """Compare the footers of the files with the manifest."""
    found = flush.count_rows(store.open())
    return AssetCheckResult(
        passed=found.named == found.in_files and not found.overlapping,
        severity=AssetCheckSeverity.ERROR,
        metadata={name: MetadataValue.int(count) for name, count in asdict(found).items()},
    )


def _result(faults: Mapping[str, str]) -> AssetCheckResult:
    shown = dict(sorted(faults.items())[:_SHOWN])
    return AssetCheckResult(
        passed=not faults,
        severity=AssetCheckSeverity.ERROR,
        metadata={"faults": MetadataValue.int(len(faults)), "by_key": MetadataValue.json(shown)},
    )


check_job = define_asset_job(
    "verify_segments",
    AssetSelection.all_asset_checks(),
    executor_def=in_process_executor,
    tags={"lane": "compute"},
    description="Compare every file with the catalog.",
)

check_schedule = ScheduleDefinition(
    name="verify_segments_daily",
    job=check_job,
    cron_schedule="40 3 * * *",
    default_status=DefaultScheduleStatus.RUNNING,
)

log_check_job = define_asset_job(
    "check_request_logs",
    AssetSelection.checks(logs_are_flushed, log_rows_are_counted),
    executor_def=in_process_executor,
    tags={"lane": "wait"},
    description="Count the logs in files, and look whether they are flushed in time.",
)

log_check_schedule = ScheduleDefinition(
    name="check_request_logs_hourly",
    job=log_check_job,
    cron_schedule="5 * * * *",
    default_status=DefaultScheduleStatus.RUNNING,
)
