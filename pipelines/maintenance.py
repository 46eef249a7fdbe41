"""Upkeep that nobody waits for: unnamed files and old uploads are removed, named files are verified."""

from pipelines import flush, sheet_upkeep
from storage import verification
from storage.model_results import forget_results
from storage.sheet_views import AGAIN
from storage.store import Store
from storage.sweep import forget_unnamed, sweep_sheets
from storage.uploads import sweep_uploads


def sweep_store(store: Store) -> dict[str, int]:
    """Remove what nobody can read any more and what crashes left behind; publish views anew.

    Returns counts of what was removed, files and bytes among them, and of the view files.
    Files of segments count as segments where a commit had named them, as sheet_files where none had.
    The files of views name others by their place: these are right again when the home folder was moved.
    Views of tables that changed lately are published again, so that what their older files named can go.
    """
    forgotten = forget_unnamed(store)
    swept = sweep_sheets(store)
    return {
        "deleted_sheets": forgotten.sheets,
        "snapshots": forgotten.snapshots,
        "patches": forgotten.patches,
        "segments": forgotten.segments,
        "sheet_files": swept.files,
        "sheet_bytes": swept.bytes,
        "log_files": flush.run_sweep(store),
        "model_results": forget_results(store),
        "uploads": sweep_uploads(store),
        "published_views": flush.run_publication(store),
        "published_table_views": sheet_upkeep.run_publication(store, again=AGAIN),
    }


def verify_sheets(store: Store) -> dict[str, str]:
    """Compare the files of all sheets with the catalog; faults by sheet, empty when all is well."""
    found = verification.verify_sheets(store)
    return {f"sheet {no}": "; ".join(problems) for no, problems in found.items()}
