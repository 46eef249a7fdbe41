"""The asset of sheets: a partition a sheet, a run an operation that writes it."""

from dagster import (
    AssetExecutionContext,
    AssetMaterialization,
    AssetSelection,
    AssetSpec,
    Config,
    DynamicPartitionsDefinition,
    MaterializeResult,
    MetadataValue,
    TableColumn,
    TableSchema,
    asset,
    define_asset_job,
    in_process_executor,
)

from pipelines.defs.column_records import metadata_of_column, value_of
from pipelines.launches import (
    COLUMN_ASSET,
    IMPORT_JOB,
    MODEL_ASSET,
    MODEL_JOB,
    MODEL_POOL,
    RECALCULATION_ASSET,
    RECALCULATION_JOB,
    SHEET_ASSET,
    SHEET_PARTITIONS,
)
from pipelines.registry import WORK
from pipelines.resources import StoreResource
from pipelines.work import Outcome, reopen, run_operation

sheet_partitions = DynamicPartitionsDefinition(name=SHEET_PARTITIONS)
sheet_column = AssetSpec(
    COLUMN_ASSET,
    deps=[RECALCULATION_ASSET, MODEL_ASSET],
    partitions_def=sheet_partitions,
    group_name="sheets",
    description="A column of a recalculation: cells, price, tokens, errors, latencies; an event each.",
)


class OperationConfig(Config):
    """Which attempt at which operation a run works on."""

    operation_no: int
    attempt: int


@asset(
    name=SHEET_ASSET,
    partitions_def=sheet_partitions,
    group_name="sheets",
    description="Immutable Parquet segments of a sheet's columns and the manifest that names them.",
)
def sheet_snapshots(
    context: AssetExecutionContext, config: OperationConfig, store: StoreResource
) -> MaterializeResult[None]:
    """Write a sheet's next snapshot."""
    return write_by_operation(context, config, store)


@asset(
    name=RECALCULATION_ASSET,
    partitions_def=sheet_partitions,
    group_name="sheets",
    deps=[sheet_snapshots],
    description="Computed columns of a sheet: values and errors of their cells, one commit a column.",
)
def sheet_recalculation(
    context: AssetExecutionContext, config: OperationConfig, store: StoreResource
) -> MaterializeResult[None]:
    """Compute the cells that an operation asks for."""
    return write_by_operation(context, config, store)


@asset(
    name=MODEL_ASSET,
    partitions_def=sheet_partitions,
    group_name="sheets",
    deps=[sheet_snapshots],
    pool=MODEL_POOL,
    description="As sheet_recalculation, where columns ask models: as many at once as the pool lets.",
)
def sheet_model_answers(
    context: AssetExecutionContext, config: OperationConfig, store: StoreResource
) -> MaterializeResult[None]:
    """Compute the cells that an operation asks for, some of them by models."""
    return write_by_operation(context, config, store)


def write_by_operation(
    context: AssetExecutionContext, config: OperationConfig, store: StoreResource
) -> MaterializeResult[None]:
    """Do the work of an operation, and tell of it."""
    if not context.has_partition_key:
        raise ValueError("It is written by an operation: launch it with its partition.")
    opened = store.open()
    attempt = reopen(opened, config.operation_no, config.attempt, context.run.parent_run_id)
    outcome = run_operation(WORK, opened, config.operation_no, attempt, context.run_id, context.log.info)
    for record in outcome.columns:
        told = metadata_of_column(record)
        context.log_event(AssetMaterialization(COLUMN_ASSET, partition=context.partition_key, metadata=told))
    return MaterializeResult(metadata=metadata_of(outcome))


def metadata_of(outcome: Outcome) -> dict[str, MetadataValue]:
    """Spell an outcome as metadata of a materialization: counts, ids and the schema, no content."""
    columns = [TableColumn(name, kind) for name, kind in outcome.schema.items()]
    found: dict[str, MetadataValue] = {name: value_of(fact) for name, fact in outcome.facts.items()}
    if columns:
        found["dagster/column_schema"] = MetadataValue.table_schema(TableSchema(columns))
    return found


import_job = define_asset_job(
    IMPORT_JOB,
    AssetSelection.assets(sheet_snapshots).without_checks(),
    executor_def=in_process_executor,
    description="Import a file or logged requests into a sheet.",
)
recalculation_job = define_asset_job(
    RECALCULATION_JOB,
    AssetSelection.assets(sheet_recalculation).without_checks(),
    executor_def=in_process_executor,
    description="Compute cells of a sheet.",
)
model_job = define_asset_job(
    MODEL_JOB,
    AssetSelection.assets(sheet_model_answers).without_checks(),
    executor_def=in_process_executor,
    description="Compute cells of a sheet, some of them by models.",
)
