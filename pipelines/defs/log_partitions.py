"""The asset of compacted logs: the small segments of a day become large ones, and deleted logs leave them."""

from dataclasses import asdict
from datetime import date

from dagster import (
    AssetExecutionContext,
    AssetSelection,
    DefaultSensorStatus,
    DynamicPartitionsDefinition,
    MaterializeResult,
    MetadataValue,
    RunRequest,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    asset,
    define_asset_job,
    in_process_executor,
    sensor,
)

from pipelines import compaction
from pipelines.defs.due_work import reason_to_wait
from pipelines.defs.request_logs import request_log_segments
from pipelines.resources import StoreResource, process_store

COMPACTION_JOB = "compact_request_logs"
_EVERY_S = 30

log_days = DynamicPartitionsDefinition(name="log_days")


@asset(
    group_name="request_logs",
    deps=[request_log_segments],
    partitions_def=log_days,
    description="Large Parquet files of logs by day (UTC), without what was deleted.",
)
def request_log_partitions(context: AssetExecutionContext, store: StoreResource) -> MaterializeResult[None]:
    """Merge the files of a day."""
    result = compaction.run_compaction(store.open(), date.fromisoformat(context.partition_key))
    context.log.info("%d files became %d", result.files_before, result.files_after)
    return MaterializeResult(
        metadata={name: MetadataValue.int(count) for name, count in asdict(result).items()}
    )


compaction_job = define_asset_job(
    COMPACTION_JOB,
    AssetSelection.assets(request_log_partitions).without_checks(),
    executor_def=in_process_executor,
    tags={"lane": "compute"},
    description="Merge the small files of a day's logs; leave out what was deleted.",
)


@sensor(
    name="compaction",
    job=compaction_job,
    minimum_interval_seconds=_EVERY_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Compacts a day's logs when it has enough small files, or is over, or logs were deleted.",
)
def compaction_sensor(context: SensorEvaluationContext) -> SensorResult | SkipReason:
    """Ask for the oldest day that is due while none is under way."""
    store = process_store()
    due = compaction.find_due_days(store)
    if not due:
        return SkipReason("No day has files to merge.")
    waits = reason_to_wait(context, store.settings, COMPACTION_JOB, f"{len(due)} days are due")
    if waits is not None:
        return waits
    day = due[0].isoformat()
    return SensorResult(
        run_requests=[RunRequest(partition_key=day)],
        dynamic_partitions_requests=[log_days.build_add_request([day])],
    )
