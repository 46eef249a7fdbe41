"""Everything that Dagster loads: assets, checks, jobs, sensors, schedules and the store they share."""

from dagster import Definitions, in_process_executor

from pipelines.defs import (
    checks,
    datasets,
    log_index,
    log_partitions,
    log_retention,
    log_summary,
    maintenance,
    operations,
    probe,
    request_logs,
    sheet_upkeep,
    sheets,
    webhooks,
)
from pipelines.resources import StoreResource

defs = Definitions(
    assets=[
        sheets.sheet_snapshots,
        sheets.sheet_recalculation,
        sheet_upkeep.sheet_compactions,
        maintenance.swept_store,
        datasets.dataset_versions,
        request_logs.request_log_segments,
        log_index.request_log_index,
        log_partitions.request_log_partitions,
        log_retention.request_log_retention,
        log_summary.request_log_summary,
        webhooks.webhook_deliveries,
    ],
    asset_checks=[
        checks.sheet_segments_are_whole,
        checks.log_segments_are_whole,
        checks.logs_are_flushed,
        checks.log_rows_are_counted,
    ],
    jobs=[
        sheets.import_job,
        sheets.recalculation_job,
        sheet_upkeep.upkeep_job,
        datasets.dataset_job,
        request_logs.flush_job,
        log_index.index_job,
        log_partitions.compaction_job,
        log_retention.retention_job,
        log_summary.summary_job,
        checks.log_check_job,
        checks.check_job,
        maintenance.retention,
        maintenance.sweep,
        webhooks.webhooks_job,
        probe.probe_job,
    ],
    sensors=[
        operations.outbox,
        operations.failed_runs,
        operations.canceled_runs,
        request_logs.flush_sensor,
        log_index.index_sensor,
        log_partitions.compaction_sensor,
        sheet_upkeep.upkeep_sensor,
        webhooks.overdue_webhooks,
    ],
    schedules=[
        log_retention.schedule,
        log_summary.summary_schedule,
        checks.log_check_schedule,
        checks.check_schedule,
        *maintenance.schedules,
        webhooks.schedule,
    ],
    resources={"store": StoreResource()},
    executor=in_process_executor,
)
