"""Daily jobs: old runs leave Dagster's storage, files that nothing names leave the data folder."""

from datetime import UTC, datetime, timedelta

from dagster import (
    AssetExecutionContext,
    AssetSelection,
    DagsterInstance,
    DagsterRunStatus,
    DefaultScheduleStatus,
    MaterializeResult,
    MetadataValue,
    OpExecutionContext,
    RunsFilter,
    ScheduleDefinition,
    asset,
    define_asset_job,
    in_process_executor,
    job,
    op,
)

from pipelines import maintenance
from pipelines.launches import DATASET_PARTITIONS, FLUSH_JOB, SHEET_PARTITIONS
from pipelines.resources import StoreResource
from storage.partitions import find_gone_groups, find_gone_sheets
from storage.store import Store

_ENDED = [DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED]
_BATCH = 200
# Flushes follow each other every half minute under load; a success tells nothing after a day.
_FLUSH_DAYS = 1


def delete_runs(instance: DagsterInstance, *, before: datetime, job_name: str | None = None) -> int:
    """Delete the runs that ended before a moment, with their events; return how many."""
    ended = RunsFilter(job_name=job_name, statuses=_ENDED, updated_before=before)
    deleted = 0
    while runs := instance.get_runs(ended, limit=_BATCH):
        for run in runs:
            instance.delete_run(run.run_id)
        deleted += len(runs)
    return deleted


@op
def delete_old_runs(context: OpExecutionContext, store: StoreResource) -> None:
    """Delete ended runs that are older than the setting says."""
    now = datetime.now(UTC)
    old = delete_runs(context.instance, before=now - timedelta(days=store.open().settings.run_days))
    flushes = delete_runs(context.instance, before=now - timedelta(days=_FLUSH_DAYS), job_name=FLUSH_JOB)
    context.log.info("%d old runs and %d flushes deleted", old, flushes)


@op
def delete_old_partitions(context: OpExecutionContext, store: StoreResource) -> None:
    """Delete the partitions of sheets and dataset groups that are gone for good."""
    gone = delete_partitions(context.instance, store.open())
    context.log.info("%d partitions deleted", gone)


def delete_partitions(instance: DagsterInstance, store: Store) -> int:
    """Delete the partitions of what nobody can bring back any more; return how many."""
    gone = 0
    for name, find_gone in ((SHEET_PARTITIONS, find_gone_sheets), (DATASET_PARTITIONS, find_gone_groups)):
        for key in find_gone(store, instance.get_dynamic_partitions(name)):
            instance.delete_dynamic_partition(name, key)
            gone += 1
    return gone


@asset(
    group_name="upkeep",
    description="What nobody can read any more, removed: states between versions, files, deleted sheets.",
)
def swept_store(context: AssetExecutionContext, store: StoreResource) -> MaterializeResult[None]:
    """Remove what nothing names any more, and publish the views anew."""
    counts = maintenance.sweep_store(store.open())
    for kind, count in counts.items():
        context.log.info("%s: %d", kind, count)
    return MaterializeResult(metadata={name: MetadataValue.int(count) for name, count in counts.items()})


@job(executor_def=in_process_executor, tags={"lane": "wait"})
def retention() -> None:
    """Keep Dagster's storage small."""
    delete_old_runs()
    delete_old_partitions()


sweep = define_asset_job(
    "sweep",
    AssetSelection.assets(swept_store).without_checks(),
    executor_def=in_process_executor,
    tags={"lane": "wait"},
    description="Keep catalog and data folder free of what nothing names.",
)


schedules = [
    ScheduleDefinition(
        name=f"{one.name}_daily",
        job=one,
        cron_schedule=cron,
        default_status=DefaultScheduleStatus.RUNNING,
    )
    for one, cron in ((retention, "10 3 * * *"), (sweep, "25 3 * * *"))
]
