"""Operations: the long work that a client polls; its states, its names, its id."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Literal

QUEUED, RUNNING, SUCCEEDED, FAILED = "queued", "running", "succeeded", "failed"
COMPLETED, CANCELLED = "completed", "cancelled"
ENDED = frozenset({SUCCEEDED, FAILED, COMPLETED, CANCELLED})
IMPORT_FILE, IMPORT_REQUEST_LOGS = "import_file", "import_request_logs"
IMPORTS = frozenset({IMPORT_FILE, IMPORT_REQUEST_LOGS})
RECALCULATE = "recalculate"
DATASET_FILE, DATASET_FILTER = "dataset_file", "dataset_filter"
DATASET_COPY, DATASET_SAVE = "dataset_copy", "dataset_save"
REPORT_REFRESH = "report_refresh"
DATASETS = frozenset({DATASET_FILE, DATASET_FILTER, DATASET_COPY, DATASET_SAVE})
CANCELLED_MESSAGE = "cancelled"
# A run that dies before it claims is started again; work that can never start must not be tried for ever.
MAX_ATTEMPTS = 20
# What a killed recalculation did is kept, so it goes on; one that kills its run each time must end.
_MAX_RESUMES = 4

Lane = Literal["short", "compute", "wait"]

OPERATION_ID_PATTERN = r"^[A-Za-z0-9_.:-]{1,128}$"


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the outbox: what is to be done, how far it is, and what the client reads of it."""

    no: int
    id: str
    workspace_id: int
    user_id: int
    kind: str
    lane: Lane
    status: str
    table_no: int | None
    sheet_no: int | None
    request_hash: str
    spec: dict[str, Any]
    attempt: int
    run_id: str | None
    launched_at: datetime | None
    progress: int
    message: str
    error_message: str | None
    rows_added: int
    answer: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def run_key(self) -> str:
        """Identity of one attempt: Dagster starts at most one run of it."""
        return f"{self.workspace_id}:{self.id}:{self.attempt}"


class RunEnd(Enum):
    """What the end of a run means to its operation."""

    NOTHING = "nothing"
    AGAIN = "again"
    FAIL = "fail"


def plan_run_end(operation: Operation, attempt: int, run_id: str, *, cancelled: bool) -> RunEnd:
    """Decide what becomes of an operation whose run (launched for `attempt`) ended without ending it.

    A run that claimed and died has failed the operation, but for a recalculation, which is resumed; one that
    died before its claim is replaced.
    """
    unrecorded = operation.run_id is None and operation.attempt == attempt
    if operation.ended or not (operation.run_id == run_id or unrecorded):
        return RunEnd.NOTHING
    resumes = operation.kind == RECALCULATE and operation.attempt <= _MAX_RESUMES
    may_go_on = resumes if operation.status == RUNNING else operation.attempt < MAX_ATTEMPTS
    again = may_go_on and not cancelled
    return RunEnd.AGAIN if again else RunEnd.FAIL
