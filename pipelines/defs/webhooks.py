"""Webhooks seen from Dagster: an asset that counts deliveries, and a sensor that arms what is overdue again.

Delivering itself is the work of a process of its own (`pipelines.deliveries`): a run a delivery would be
too slow and too much.
"""

from dataclasses import asdict

from dagster import (
    AssetExecutionContext,
    AssetSelection,
    DefaultScheduleStatus,
    DefaultSensorStatus,
    MaterializeResult,
    MetadataValue,
    ScheduleDefinition,
    SensorEvaluationContext,
    SkipReason,
    asset,
    define_asset_job,
    in_process_executor,
    sensor,
)

from pipelines import webhooks
from pipelines.resources import StoreResource, process_store

_EVERY_S = 60


@asset(
    group_name="webhooks",
    description="The outbox of webhooks: deliveries on their way, made, given up, and overdue.",
)
def webhook_deliveries(context: AssetExecutionContext, store: StoreResource) -> MaterializeResult[None]:
    """Delete what ended long ago and count the rest."""
    found = webhooks.report(store.open())
    counts = {**asdict(found.outbox), "pruned": found.pruned}
    context.log.info("%s", ", ".join(f"{count} {name}" for name, count in counts.items()))
    return MaterializeResult(metadata={name: MetadataValue.int(count) for name, count in counts.items()})


webhooks_job = define_asset_job(
    "webhooks",
    AssetSelection.assets(webhook_deliveries).without_checks(),
    executor_def=in_process_executor,
    tags={"lane": "wait"},
    description="Count webhook deliveries; delete those that ended long ago.",
)


@sensor(
    name="overdue_webhooks",
    # its work is done in the tick; the target only tells where it belongs
    target=webhooks_job,
    minimum_interval_seconds=_EVERY_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Makes webhook deliveries due again that nothing else would, and tells of overdue ones.",
)
def overdue_webhooks(_context: SensorEvaluationContext) -> SkipReason:
    """Arm what is overdue; the delivering process does the rest."""
    found = webhooks.arm_overdue(process_store())
    if found.waiting:
        return SkipReason(f"{found.waiting} deliveries are overdue: is the process `webhooks` running?")
    if found.rearmed:
        return SkipReason(f"{found.rearmed} deliveries were made due again.")
    return SkipReason("Nothing is overdue.")


schedule = ScheduleDefinition(
    name="webhooks_daily",
    job=webhooks_job,
    cron_schedule="55 3 * * *",
    default_status=DefaultScheduleStatus.RUNNING,
)
