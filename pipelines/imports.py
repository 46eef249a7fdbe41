"""The work of an import's run: claim, read, write, commit; or fail with a sentence for the client."""

import time

from pipelines.work import Outcome, Report
from storage.dataset_commit import get_made_dataset
from storage.dataset_filters import write_filtered
from storage.domain.errors import NotFound, PromptlakeError
from storage.domain.imports import Imported, ImportRefused, ImportTarget
from storage.domain.operations import DATASET_FILTER, DATASETS, IMPORT_REQUEST_LOGS, Operation
from storage.file_imports import discard_segments, write_file
from storage.history_imports import write_history
from storage.import_commit import commit_import
from storage.imports import get_import_target
from storage.operations import ClaimRefused, claim, fail, set_progress
from storage.store import Store

PROGRESS_EVERY_S = 0.5
# Reading fills the bar up to here; publishing and the commit fill the rest.
_READ_SHARE = 95


class Refused(PromptlakeError):
    """The content was refused: the operation has failed and says why; the run's log does not."""


def run_import(store: Store, no: int, attempt: int, run_id: str, report: Report) -> Outcome:
    """Import what an operation asks for: files first, then everything that names them in one transaction.

    Raises:
        ClaimRefused: another run has the operation, or it was cancelled; nothing was added.
        Refused: the content breaks a rule; nothing was added.
        Unavailable: the disk is full or the catalog busy; nothing was added.
    """
    operation = claim(store, no, attempt, run_id)
    target = get_import_target(store, operation)
    report(f"Importing into sheet {target.sheet_id}, attempt {attempt}.")
    try:
        imported = _write(store, operation, target, progress_of(store, operation))
        return _commit(store, operation, imported, report)
    except (ImportRefused, NotFound) as refusal:
        # Titles of the client's content may stand in the sentence, so it goes to the client alone.
        fail(store, no, attempt, refusal.message)
        raise Refused(f"The import was refused; operation {operation.id} says why.") from None


def _write(store: Store, operation: Operation, target: ImportTarget, progress: "_Progress") -> Imported:
    if operation.kind == IMPORT_REQUEST_LOGS:
        return write_history(store, operation, target, progress)
    if operation.kind == DATASET_FILTER:
        return write_filtered(store, operation, target, progress)
    return write_file(store, operation, target, progress)


def _commit(store: Store, operation: Operation, imported: Imported, report: Report) -> Outcome:
    try:
        sheet = commit_import(store, operation, imported)
    except (ClaimRefused, ImportRefused):
        discard_segments(store, imported)
        raise
    facts = {
        "rows": imported.row_count,
        "bytes": sum(segment.bytes for segment in imported.segments),
        "columns": len(imported.titles),
        "version": sheet.version_count,
    }
    if operation.kind in DATASETS:
        made = get_made_dataset(store, operation)
        facts["version"] = made.version_number if made else 0
    report(f"Committed {', '.join(f'{count} {name}' for name, count in facts.items())}.")
    return Outcome(facts, _schema(imported))


def _schema(imported: Imported) -> dict[str, str]:
    """Return each title's encodings in the segments, joined where they differ."""
    found: dict[str, dict[str, None]] = {title: {} for title in imported.titles}
    for segment in imported.segments:
        for one in segment.fields:
            found[imported.titles[one.position]][one.encoding] = None
    return {title: " | ".join(encodings) or "text" for title, encodings in found.items()}


def progress_of(store: Store, operation: Operation) -> "_Progress":
    """Return what tells the client of an operation how far its reading is."""
    return _Progress(store, operation)


class _Progress:
    """Tells the client at most twice a second; stops the work when the run no longer owns the operation."""

    def __init__(self, store: Store, operation: Operation) -> None:
        self._store = store
        self._operation = operation
        self._told_at = time.monotonic()

    def __call__(self, share: float, rows: int) -> None:
        now = time.monotonic()
        if now - self._told_at < PROGRESS_EVERY_S:
            return
        self._told_at = now
        percent = min(int(share * _READ_SHARE), _READ_SHARE)
        if not set_progress(self._store, self._operation, percent, f"{rows} rows read"):
            raise ClaimRefused(f"operation {self._operation.no} was cancelled or taken over")
