"""The asset of daily summaries: requests, errors, tokens, cost and latency by model, with a chart."""

from base64 import b64encode
from datetime import date, timedelta

from dagster import (
    AssetExecutionContext,
    AssetSelection,
    DefaultScheduleStatus,
    MaterializeResult,
    MetadataValue,
    RunRequest,
    ScheduleEvaluationContext,
    asset,
    define_asset_job,
    in_process_executor,
    schedule,
)

from pipelines import log_summary
from pipelines.defs.log_partitions import log_days, request_log_partitions
from pipelines.resources import StoreResource

_TOTALS = ("requests", "errors", "input_tokens", "output_tokens")


@asset(
    group_name="request_logs",
    deps=[request_log_partitions],
    partitions_def=log_days,
    description="What a day of logging (UTC) comes to, by model: counts, tokens, cost and latency.",
)
def request_log_summary(context: AssetExecutionContext, store: StoreResource) -> MaterializeResult[None]:
    """Sum up a day."""
    found = log_summary.run_summary(store.open(), date.fromisoformat(context.partition_key))
    chart = b64encode(found.chart().encode()).decode()
    metadata: dict[str, MetadataValue] = {name: MetadataValue.int(int(found.total(name))) for name in _TOTALS}
    metadata["cost"] = MetadataValue.float(round(found.total("cost"), 6))
    metadata["workspaces"] = MetadataValue.int(found.workspaces)
    metadata["by_model"] = MetadataValue.md(found.table())
    metadata["by_hour"] = MetadataValue.md(f"![](data:image/svg+xml;base64,{chart})")
    return MaterializeResult(metadata=metadata)


summary_job = define_asset_job(
    "summarize_request_logs",
    AssetSelection.assets(request_log_summary).without_checks(),
    executor_def=in_process_executor,
    tags={"lane": "wait"},
    description="Sum up a day of logging.",
)


@schedule(
    name="summarize_request_logs_daily",
    job=summary_job,
    cron_schedule="20 0 * * *",
    execution_timezone="UTC",
    default_status=DefaultScheduleStatus.RUNNING,
    description="Sums up the day that is over.",
)
def summary_schedule(context: ScheduleEvaluationContext) -> RunRequest:
    """Ask for the day before the tick."""
    day = (context.scheduled_execution_time - timedelta(days=1)).date().isoformat()
    context.instance.add_dynamic_partitions(str(log_days.name), [day])
    return RunRequest(partition_key=day)
