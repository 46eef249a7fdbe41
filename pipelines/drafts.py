"""The work of a draft's run that writes no rows: a version is copied into the draft, or the draft saved."""

from pipelines.work import Outcome, Report
from storage.dataset_commit import commit_draft
from storage.operations import claim
from storage.store import Store


def run_draft(store: Store, no: int, attempt: int, run_id: str, report: Report) -> Outcome:
    """Copy or save what an operation asks for; its cost does not depend on how many rows there are.

    Raises:
        ClaimRefused: another run has the operation, or it was cancelled; nothing was changed.
        ImportRefused: the draft was deleted.
        Unavailable: the disk is full or the catalog busy.
    """
    operation = claim(store, no, attempt, run_id)
    made = commit_draft(store, operation)
    facts = {
        "rows": made.row_count,
        "bytes": 0,
        "columns": len(made.column_names),
        "version": made.version_number,
        "dataset_id": made.id,
    }
    report(f"Committed {', '.join(f'{count} {name}' for name, count in facts.items())}.")
    return Outcome(facts, dict.fromkeys(made.column_names, "text"))
