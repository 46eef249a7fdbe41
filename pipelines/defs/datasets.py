"""The asset of datasets: a partition a dataset group, a run an operation that works on its draft."""

from dagster import (
    AssetExecutionContext,
    AssetSelection,
    DynamicPartitionsDefinition,
    MaterializeResult,
    asset,
    define_asset_job,
    in_process_executor,
)

from pipelines.defs.sheets import OperationConfig, write_by_operation
from pipelines.launches import DATASET_ASSET, DATASET_JOB, DATASET_PARTITIONS
from pipelines.resources import StoreResource

dataset_partitions = DynamicPartitionsDefinition(name=DATASET_PARTITIONS)


@asset(
    name=DATASET_ASSET,
    partitions_def=dataset_partitions,
    group_name="datasets",
    description="Versions of a dataset group: immutable Parquet segments and the manifest that names them.",
)
def dataset_versions(
    context: AssetExecutionContext, config: OperationConfig, store: StoreResource
) -> MaterializeResult[None]:
    """Fill, copy or save the draft of a group."""
    return write_by_operation(context, config, store)


dataset_job = define_asset_job(
    DATASET_JOB,
    AssetSelection.assets(dataset_versions).without_checks(),
    executor_def=in_process_executor,
    description="Read a file or requests into a dataset version, copy a version, save a draft.",
)
