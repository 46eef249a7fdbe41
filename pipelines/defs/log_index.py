"""The asset of indexes: words and values of each segment, made after it so that no flush waits for them."""

from dataclasses import asdict

from dagster import (
    AssetExecutionContext,
    AssetSelection,
    DefaultSensorStatus,
    MaterializeResult,
    MetadataValue,
    RunRequest,
    SensorEvaluationContext,
    SkipReason,
    asset,
    define_asset_job,
    in_process_executor,
    sensor,
)

from pipelines import log_index
from pipelines.defs.due_work import reason_to_wait
from pipelines.defs.request_logs import request_log_segments
from pipelines.resources import StoreResource, process_store

INDEX_JOB = "index_request_logs"
_EVERY_S = 30


@asset(
    group_name="request_logs",
    deps=[request_log_segments],
    description="Of each segment of logs, the index of its words and the dictionary of its values.",
)
def request_log_index(context: AssetExecutionContext, store: StoreResource) -> MaterializeResult[None]:
    """Make what segments lack."""
    result = log_index.run_indexing(store.open())
    context.log.info("%d segments indexed", result.segments)
    return MaterializeResult(
        metadata={name: MetadataValue.int(count) for name, count in asdict(result).items()}
    )


index_job = define_asset_job(
    INDEX_JOB,
    AssetSelection.assets(request_log_index).without_checks(),
    executor_def=in_process_executor,
    tags={"lane": "compute"},
    description="Index the words and values of segments that lack it.",
)


@sensor(
    name="index",
    job=index_job,
    minimum_interval_seconds=_EVERY_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Indexes segments once they are large enough to need it.",
)
def index_sensor(context: SensorEvaluationContext) -> RunRequest | SkipReason:
    """Ask for the index of what lacks one while none is under way."""
    store = process_store()
    waiting = log_index.count_waiting(store)
    if not waiting:
        return SkipReason("Every segment has its index.")
    return reason_to_wait(context, store.settings, INDEX_JOB, f"{waiting} segments wait") or RunRequest()
