"""Sensors between outbox and Dagster: a queued operation gets a run, an ended run is told to it.

Opening a Dagster instance costs a sensor 50 ms, so the one that ticks often asks the catalog first.
"""

from datetime import timedelta

from dagster import (
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    DefaultSensorStatus,
    RunFailureSensorContext,
    RunRequest,
    RunsFilter,
    RunStatusSensorContext,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    run_failure_sensor,
    run_status_sensor,
    sensor,
)

from pipelines.defs.datasets import dataset_job, dataset_partitions
from pipelines.defs.sheets import import_job, model_job, recalculation_job, sheet_partitions
from pipelines.home import worker_is_reachable
from pipelines.launches import OUTBOX_SENSOR, attempt_of, launch_of
from pipelines.resources import process_store
from storage import operations
from storage.domain.operations import QUEUED, Operation
from storage.store import Store

OPERATION_JOBS = [import_job, recalculation_job, model_job, dataset_job]
PARTITIONS = [sheet_partitions, dataset_partitions]
# The API launches at once after its commit; the net must not race it.
GRACE = timedelta(seconds=3)
# A tick costs the daemon some 30 ms whatever it finds, and nothing waits for one while the API launches.
_OFTEN_S = 15
_SELDOM_S = 60


@sensor(
    name=OUTBOX_SENSOR,
    jobs=OPERATION_JOBS,
    minimum_interval_seconds=_OFTEN_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Launches every queued operation that has no live run; settles those whose run has ended.",
)
def outbox(context: SensorEvaluationContext) -> SensorResult | SkipReason:
    """Launch what the API could not, and what an ended run left behind."""
    store = process_store()
    unended = [o for o in operations.list_unended(store) if store.now() - o.updated_at >= GRACE]
    if not unended:
        return SkipReason("No operation waits for a run.")
    lost = [operation for operation in unended if _needs_run(context.instance, store, operation)]
    if not lost:
        return SkipReason(f"{len(unended)} operations have not ended; each has its run.")
    if not worker_is_reachable(store.settings):
        return SkipReason(f"The worker host is down; {len(lost)} operations wait for it.")
    return _launches(store, lost)


def _launches(store: Store, lost: list[Operation]) -> SensorResult:
    launches = [launch_of(operation, operations.get_sheet_id(store, operation)) for operation in lost]
    requests = [
        RunRequest(
            run_key=launch.run_key, run_config=launch.run_config, tags=launch.tags, job_name=launch.job
        )
        for launch in launches
    ]
    partitions = [
        definition.build_add_request(keys)
        for definition in PARTITIONS
        if (keys := sorted({one.partition for one in launches if one.partitions == definition.name}))
    ]
    return SensorResult(run_requests=requests, dynamic_partitions_requests=partitions)


def _needs_run(instance: DagsterInstance, store: Store, operation: Operation) -> bool:
    """Tell whether an operation waits without a run; one whose run has ended is settled on the way."""
    run = _find_run(instance, operation)
    if run is not None and not run.is_finished:
        operations.record_launch(store, operation.no, operation.attempt, run.run_id)
        return False
    if run is None and operation.run_id is None:
        return operation.status == QUEUED
    run_id = run.run_id if run else operation.run_id or ""
    cancelled = run is not None and run.status == DagsterRunStatus.CANCELED
    # Where this queues a next attempt, a later tick launches it.
    operations.settle_ended_run(store, operation.no, operation.attempt, run_id, cancelled=cancelled)
    return False


def _find_run(instance: DagsterInstance, operation: Operation) -> DagsterRun | None:
    if operation.run_id is not None:
        return instance.get_run_by_id(operation.run_id)
    found = instance.get_runs(RunsFilter(tags={"dagster/run_key": operation.run_key}), limit=1)
    return found[0] if found else None


@run_failure_sensor(
    name="failed_runs",
    monitored_jobs=OPERATION_JOBS,
    minimum_interval_seconds=_SELDOM_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Tells an operation that its run failed, also one that the outbox no longer looks at.",
)
def failed_runs(context: RunFailureSensorContext) -> None:
    """End or requeue the operation of a failed run."""
    _settle(context.dagster_run, cancelled=False)


@run_status_sensor(
    name="canceled_runs",
    run_status=DagsterRunStatus.CANCELED,
    monitored_jobs=OPERATION_JOBS,
    minimum_interval_seconds=_SELDOM_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Tells an operation that its run was canceled.",
)
def canceled_runs(context: RunStatusSensorContext) -> None:
    """End the operation of a canceled run."""
    _settle(context.dagster_run, cancelled=True)


def _settle(run: DagsterRun, *, cancelled: bool) -> None:
    attempt = attempt_of(run.run_config)
    if attempt is not None:
        operations.settle_ended_run(process_store(), *attempt, run.run_id, cancelled=cancelled)
