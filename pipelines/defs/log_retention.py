"""The asset of retention: once a day, logs older than their workspace keeps them are deleted."""

from dagster import (
    AssetExecutionContext,
    AssetSelection,
    DefaultScheduleStatus,
    MaterializeResult,
    MetadataValue,
    ScheduleDefinition,
    asset,
    define_asset_job,
    in_process_executor,
)

from pipelines import compaction
from pipelines.defs.log_partitions import request_log_partitions
from pipelines.resources import StoreResource


@asset(
    group_name="request_logs",
    deps=[request_log_partitions],
    description="Logs that are older than their workspace keeps them, deleted.",
)
def request_log_retention(context: AssetExecutionContext, store: StoreResource) -> MaterializeResult[None]:
    """Delete what is too old."""
    deleted = compaction.run_retention(store.open())
    for workspace_id, count in deleted.items():
        context.log.info("workspace %d: %d logs deleted", workspace_id, count)
    counts = {"deleted_rows": sum(deleted.values()), "workspaces": len(deleted)}
    return MaterializeResult(metadata={name: MetadataValue.int(count) for name, count in counts.items()})


retention_job = define_asset_job(
    "forget_request_logs",
    AssetSelection.assets(request_log_retention).without_checks(),
    executor_def=in_process_executor,
    tags={"lane": "wait"},
    description="Delete logs that are older than their workspace keeps them.",
)

schedule = ScheduleDefinition(
    name="forget_request_logs_daily",
    job=retention_job,
    cron_schedule="40 2 * * *",
    default_status=DefaultScheduleStatus.RUNNING,
)
