"""The asset of sheets' upkeep: overlays become segments, small segments large ones; a partition a sheet."""

from dagster import (
    AssetExecutionContext,
    AssetSelection,
    DefaultSensorStatus,
    MaterializeResult,
    RunRequest,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    asset,
    define_asset_job,
    in_process_executor,
    sensor,
)

from pipelines import sheet_upkeep
from pipelines.defs.due_work import reason_to_wait
from pipelines.defs.sheets import metadata_of, sheet_partitions, sheet_snapshots
from pipelines.resources import StoreResource, process_store

UPKEEP_JOB = "compact_sheets"
_EVERY_S = 60
_MOST_AT_ONCE = 10


@asset(
    group_name="sheets",
    deps=[sheet_snapshots],
    partitions_def=sheet_partitions,
    description="Few large segments of a sheet in the place of its overlay and of many small ones.",
)
def sheet_compactions(context: AssetExecutionContext, store: StoreResource) -> MaterializeResult[None]:
    """Fold a sheet's overlay and join its small segments."""
    outcome = sheet_upkeep.run_compaction(store.open(), context.partition_key)
    context.log.info("%s", outcome.facts)
    return MaterializeResult(metadata=metadata_of(outcome))


upkeep_job = define_asset_job(
    UPKEEP_JOB,
    AssetSelection.assets(sheet_compactions).without_checks(),
    executor_def=in_process_executor,
    tags={"lane": "compute"},
    description="Fold overlays of sheets into segments; join small segments.",
)


@sensor(
    name="sheet_upkeep",
    job=upkeep_job,
    minimum_interval_seconds=_EVERY_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Gives new sheets their partition; compacts those whose overlay or small segments are many.",
)
def upkeep_sensor(context: SensorEvaluationContext) -> SensorResult:
    """Name the sheets that are new, and ask for those that are due while no compaction is under way."""
    store = process_store()
    new, cursor = sheet_upkeep.find_new_sheets(store, context.cursor)
    due = sheet_upkeep.find_due_sheets(store)[:_MOST_AT_ONCE]
    waits: SkipReason | None = SkipReason("No sheet has much to fold or to join.")
    if due:
        waits = reason_to_wait(context, store.settings, UPKEEP_JOB, f"{len(due)} sheets are due")
    # those that are due may be out of clients' sight, or new since the last tick
    keys = sorted({*new, *due})
    return SensorResult(
        run_requests=[] if waits else [RunRequest(partition_key=sheet_id) for sheet_id in due],
        skip_reason=waits,
        cursor=cursor,
        dynamic_partitions_requests=[sheet_partitions.build_add_request(keys)] if keys else [],
    )
