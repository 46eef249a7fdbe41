"""The asset of indexes: words and values of each segment, made after it so that no flush waits for them."""

from dataclasses import asdict

from dagster import (
    AssetExecutionContext,
    AssetSelection,
    DagsterRunStatus,
    DefaultSensorStatus,
    MaterializeResult,
    MetadataValue,
    RunRequest,
    RunsFilter,
    SensorEvaluationContext,
    SkipReason,
    asset,
    define_asset_job,
    in_process_executor,
    sensor,
)

from pipelines import log_index
from pipelines.defs.request_logs import request_log_segments
from pipelines.home import worker_is_reachable
from pipelines.resources import StoreResource, process_store

INDEX_JOB = "index_request_logs"
_EVERY_S = 30
_LIVE = [
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]


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
    if not worker_is_reachable(store.settings):
        return SkipReason(f"{waiting} segments wait; the worker host is down.")
    if context.instance.get_runs(RunsFilter(job_name=INDEX_JOB, statuses=_LIVE), limit=1):
        return SkipReason(f"{waiting} segments wait; indexing is under way.")
    return RunRequest()
