"""The asset of request logs: the tail of the service's database, moved into Parquet segments."""

from dagster import (
    AssetExecutionContext,
    AssetSelection,
    AssetSpec,
    DefaultSensorStatus,
    MaterializeResult,
    MetadataValue,
    RunRequest,
    SensorEvaluationContext,
    SkipReason,
    TableColumn,
    TableSchema,
    asset,
    define_asset_job,
    in_process_executor,
    sensor,
)

from pipelines import flush
from pipelines.defs.due_work import reason_to_wait
from pipelines.launches import FLUSH_JOB
from pipelines.resources import StoreResource, process_store

_EVERY_S = 15


# Written by the service itself; it stands here as the source of all others.
request_log_tail = AssetSpec(
    "request_log_tail",
    group_name="request_logs",
    description="Logs that are acknowledged and not yet in a file, in the database of the service.",
)


@asset(
    group_name="request_logs",
    deps=[request_log_tail],
    description="Immutable Parquet segments of logged requests and scores, and the views over them.",
)
def request_log_segments(context: AssetExecutionContext, store: StoreResource) -> MaterializeResult[None]:
    """Flush the tail and publish the views."""
    result = flush.run_flush(store.open())
    context.log.info("%d logs moved into %d files, %d views", result.rows, result.segments, result.published)
    columns = [TableColumn(name, kind) for name, kind in result.columns.items()]
    counts = ("rows", "bytes", "segments", "workspaces", "scores", "published")
    metadata: dict[str, MetadataValue] = {name: MetadataValue.int(getattr(result, name)) for name in counts}
    metadata["dagster/column_schema"] = MetadataValue.table_schema(TableSchema(columns))
    return MaterializeResult(metadata=metadata)


flush_job = define_asset_job(
    FLUSH_JOB,
    AssetSelection.assets(request_log_segments).without_checks(),
    executor_def=in_process_executor,
    tags={"lane": "short"},
    description="Move waiting logs into Parquet and publish the views.",
)


@sensor(
    name="flush",
    job=flush_job,
    minimum_interval_seconds=_EVERY_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Flushes the logs when enough of them wait, or one has waited long enough.",
)
def flush_sensor(context: SensorEvaluationContext) -> RunRequest | SkipReason:
    """Ask for a flush when one is due and none is under way."""
    store = process_store()
    plan = flush.due_flush(store)
    if not plan.due:
        return SkipReason(plan.reason)
    return reason_to_wait(context, store.settings, FLUSH_JOB, plan.reason) or RunRequest()
