"""The asset of sheets' views: a DuckDB file a table, written anew when the table has changed."""

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

from pipelines import sheet_upkeep
from pipelines.defs.due_work import reason_to_wait
from pipelines.defs.sheets import sheet_snapshots
from pipelines.resources import StoreResource, process_store

VIEWS_JOB = "publish_sheet_views"
_EVERY_S = 30


@asset(
    group_name="sheets",
    deps=[sheet_snapshots],
    description="A DuckDB file of views for each table: its sheets, and their saved versions.",
)
def sheet_views(context: AssetExecutionContext, store: StoreResource) -> MaterializeResult[None]:
    """Publish the views of the tables that changed."""
    published = sheet_upkeep.run_publication(store.open())
    context.log.info("%d tables published", published)
    return MaterializeResult(metadata={"tables": MetadataValue.int(published)})


views_job = define_asset_job(
    VIEWS_JOB,
    AssetSelection.assets(sheet_views).without_checks(),
    executor_def=in_process_executor,
    description="Publish DuckDB views of the tables that changed.",
)


@sensor(
    name="sheet_views",
    job=views_job,
    minimum_interval_seconds=_EVERY_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Publishes views when tables have changed.",
)
def views_sensor(context: SensorEvaluationContext) -> RunRequest | SkipReason:
    """Ask for a publication when there is something new, while none is under way."""
    store = process_store()
    due = sheet_upkeep.count_due_views(store)
    if not due:
        return SkipReason("No table has changed.")
    return reason_to_wait(context, store.settings, VIEWS_JOB, f"{due} tables have changed") or RunRequest()
