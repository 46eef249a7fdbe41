"""How an operation becomes a run: the job, the tags and the configuration, the same whoever launches it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from storage.domain.operations import IMPORTS, RECALCULATE, Operation

IMPORT_JOB = "import_sheet"
RECALCULATION_JOB = "recalculate_sheet"
SHEET_ASSET = "sheet_snapshots"
RECALCULATION_ASSET = "sheet_recalculation"
SHEET_PARTITIONS = "sheets"
OUTBOX_SENSOR = "outbox"

_JOBS = {**dict.fromkeys(IMPORTS, IMPORT_JOB), RECALCULATE: RECALCULATION_JOB}
_ASSETS = {IMPORT_JOB: SHEET_ASSET, RECALCULATION_JOB: RECALCULATION_ASSET}


@dataclass(frozen=True, slots=True)
class Launch:
    """One attempt at an operation, in Dagster's words. Tags carry ids only, never content."""

    operation_no: int
    attempt: int
    job: str
    run_key: str
    partition: str
    run_config: dict[str, Any]
    tags: dict[str, str]


def launch_of(operation: Operation, sheet_id: str) -> Launch:
    """Spell the launch of an operation's current attempt on a sheet (its public id)."""
    job = _JOBS[operation.kind]
    config = {"operation_no": operation.no, "attempt": operation.attempt}
    return Launch(
        operation_no=operation.no,
        attempt=operation.attempt,
        job=job,
        run_key=operation.run_key,
        partition=sheet_id,
        run_config={"ops": {_ASSETS[job]: {"config": config}}},
        tags={
            "operation_id": operation.id,
            "workspace_id": str(operation.workspace_id),
            "sheet_id": sheet_id,
            "kind": operation.kind,
            "lane": operation.lane,
            "dagster/partition": sheet_id,
            # Dagster holds a key for used only by runs that carry both of these.
            "dagster/run_key": operation.run_key,
            "dagster/sensor_name": OUTBOX_SENSOR,
        },
    )


def attempt_of(run_config: Mapping[str, Any]) -> tuple[int, int] | None:
    """Read an operation's number and attempt back from a run's configuration; None in a run of other work."""
    match run_config:
        case {"ops": dict(ops)}:
            for asset in _ASSETS.values():
                match ops.get(asset):
                    case {"config": {"operation_no": int(no), "attempt": int(attempt)}}:
                        return no, attempt
    return None
