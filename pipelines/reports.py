"""The work of a report's run that reads its requests anew: they are imported, then the columns computed."""

from pipelines.imports import Refused, progress_of
from pipelines.recalculation import run_recalculation
from pipelines.work import Outcome, Report
from storage.dataset_filters import write_filtered
from storage.domain.errors import InvalidConfig, NotFound
from storage.domain.imports import ImportRefused
from storage.file_imports import discard_segments
from storage.imports import get_import_target
from storage.operations import ClaimRefused, claim, fail
from storage.recalculation_progress import principal_of
from storage.report_runs import commit_refresh
from storage.store import Store


def run_refresh(store: Store, no: int, attempt: int, run_id: str, report: Report) -> Outcome:
    """Read the requests of a dynamic dataset as they stand now, and compute the report over them.

    Raises:
        ClaimRefused: another run has the operation, or it was cancelled.
        Refused: no request matches, or a column of the report does not fit.
        Unavailable: the disk is full or the catalog busy.
    """
    operation = claim(store, no, attempt, run_id)
    target = get_import_target(store, operation)
    try:
        imported = write_filtered(store, operation, target, progress_of(store, operation))
        try:
            computation = commit_refresh(store, principal_of(store, operation), operation, imported)
        except (ClaimRefused, InvalidConfig):
            discard_segments(store, imported)
            raise
    except (ImportRefused, NotFound, InvalidConfig) as refusal:
        # titles may stand in the sentence, so it goes to the client alone
        fail(store, no, attempt, refusal.message)
        raise Refused(f"The report was refused; operation {operation.id} says why.") from None
    report(f"{imported.row_count} requests read; computing.")
    return run_recalculation(store, computation.no, computation.attempt, run_id, report)
