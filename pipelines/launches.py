"""How an operation becomes a run: the job, the tags and the configuration, the same whoever launches it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from storage.domain.datasets import group_id_of
from storage.domain.operations import DATASETS, IMPORTS, RECALCULATE, REPORT_REFRESH, Operation
from storage.domain.recalculations import asks_models

IMPORT_JOB, RECALCULATION_JOB, DATASET_JOB = "import_sheet", "recalculate_sheet", "write_dataset"
MODEL_JOB = "ask_models"
SHEET_ASSET, RECALCULATION_ASSET, MODEL_ASSET = (
    "sheet_snapshots",
    "sheet_recalculation",
    "sheet_model_answers",
)
MODEL_POOL = "model_calls"
"""How many runs that ask models may work at once; without a limit (Dagster's UI sets one) any number."""
DATASET_ASSET, COLUMN_ASSET = "dataset_versions", "sheet_column"
SHEET_PARTITIONS, DATASET_PARTITIONS = "sheets", "dataset_groups"
OUTBOX_SENSOR = "outbox"
FLUSH_JOB = "flush_request_logs"

_JOBS = {
    **dict.fromkeys(IMPORTS, IMPORT_JOB),
    RECALCULATE: RECALCULATION_JOB,
    REPORT_REFRESH: IMPORT_JOB,
    **dict.fromkeys(DATASETS, DATASET_JOB),
}
_ASSETS = {
    IMPORT_JOB: SHEET_ASSET,
    RECALCULATION_JOB: RECALCULATION_ASSET,
    MODEL_JOB: MODEL_ASSET,
    DATASET_JOB: DATASET_ASSET,
}


@dataclass(frozen=True, slots=True)
class Launch:
    """One attempt at an operation, in Dagster's words. Tags carry ids only, never content.

    `partition` is a key of the dynamic partitions named `partitions`.
    """

    operation_no: int
    attempt: int
    job: str
    run_key: str
    partitions: str
    partition: str
    run_config: dict[str, Any]
    tags: dict[str, str]


def launch_of(operation: Operation, sheet_id: str) -> Launch:
    """Spell the launch of an operation's current attempt on a sheet (its public id)."""
    job = MODEL_JOB if asks_models(operation) else _JOBS[operation.kind]
    config = {"operation_no": operation.no, "attempt": operation.attempt}
    partitions, partition, tag = _place(operation, sheet_id)
    return Launch(
        operation_no=operation.no,
        attempt=operation.attempt,
        job=job,
        run_key=operation.run_key,
        partitions=partitions,
        partition=partition,
        run_config={"ops": {_ASSETS[job]: {"config": config}}},
        tags={
            "operation_id": operation.id,
            "workspace_id": str(operation.workspace_id),
            tag: partition,
            "kind": operation.kind,
            "lane": operation.lane,
            "dagster/partition": partition,
            # Dagster holds a key for used only by runs that carry both of these.
            "dagster/run_key": operation.run_key,
            "dagster/sensor_name": OUTBOX_SENSOR,
        },
    )


def _place(operation: Operation, sheet_id: str) -> tuple[str, str, str]:
    """Return the dynamic partitions, the key among them, and the tag that names what it is the id of."""
    group_id = group_id_of(operation)
    if group_id is not None:
        return DATASET_PARTITIONS, str(group_id), "dataset_group_id"
    return SHEET_PARTITIONS, sheet_id, "sheet_id"


def attempt_of(run_config: Mapping[str, Any]) -> tuple[int, int] | None:
    """Read an operation's number and attempt back from a run's configuration; None in a run of other work."""
    match run_config:
        case {"ops": dict(ops)}:
            for asset in _ASSETS.values():
                match ops.get(asset):
                    case {"config": {"operation_no": int(no), "attempt": int(attempt)}}:
                        return no, attempt
    return None
