"""Everything that Dagster loads: assets, jobs, sensors and the store they share."""

from dagster import Definitions, in_process_executor

from pipelines.defs import operations, probe, sheets
from pipelines.resources import StoreResource

defs = Definitions(
    assets=[sheets.sheet_snapshots],
    jobs=[sheets.import_job, probe.probe_job],
    sensors=[operations.outbox, operations.failed_runs, operations.canceled_runs],
    resources={"store": StoreResource()},
    executor=in_process_executor,
)
