"""Upkeep that nobody waits for: unnamed files and old uploads are removed, named files are verified."""

from pipelines import flush
from storage import verification
from storage.store import Store
from storage.sweep import sweep_sheets
from storage.uploads import sweep_uploads


def sweep_store(store: Store) -> dict[str, int]:
    """Remove what crashes left behind, and publish the views anew; return counts of files and bytes.

    The files of views name others by their place: these are right again when the home folder was moved.
    """
    swept = sweep_sheets(store)
    return {
        "sheet_files": swept.files,
        "sheet_bytes": swept.bytes,
        "log_files": flush.run_sweep(store),
        "uploads": sweep_uploads(store),
        "views": flush.run_publication(store),
    }


def verify_sheets(store: Store) -> dict[str, str]:
    """Compare the files of all sheets with the catalog; faults by sheet, empty when all is well."""
    found = verification.verify_sheets(store)
    return {f"sheet {no}": "; ".join(problems) for no, problems in found.items()}
