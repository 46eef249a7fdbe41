"""What a sheet's snapshot promises, compared with the files that it names."""

from storage.domain.manifests import Manifest, Stored
from storage.engine.rows.columns import select_columns
from storage.engine.rows.segments import select_segments
from storage.engine.rows.sheets import find_sheet_by_no, select_live_sheet_nos
from storage.engine.segment_check import segment_problems
from storage.store import Store


def verify_sheets(store: Store) -> dict[int, list[str]]:
    """Return what is wrong with the sheets that are not deleted, by number; empty when all is well."""
    with store.catalog.read() as connection:
        live = select_live_sheet_nos(connection)
    problems = {no: verify_sheet(store, no) for no in live}
    return {no: found for no, found in problems.items() if found}


def verify_sheet(store: Store, sheet_no: int) -> list[str]:
    """Return what is wrong with a sheet's current snapshot, a sentence each; nothing is well.

    Every file is read whole: it is there, has the bytes that were published, and the fields and rows that
    the manifest counts on. A deleted sheet has no problems.
    """
    with store.catalog.read() as connection:
        sheet = find_sheet_by_no(connection, sheet_no)
        if sheet is None:
            return []
        manifest = store.snapshots.get(connection, sheet.head_no).manifest
        known = select_segments(connection, sheet_no)
        live = {column.no for column in select_columns(connection, sheet_no)}
    problems = _count_problems(manifest, sheet.row_count, live)
    needed = _rows_needed(manifest)
    for key, segment in manifest.segments().items():
        if key not in known:
            problems.append(f"{key}: the catalog does not know this segment")
        else:
            problems += segment_problems(store.data, known[key], segment, needed[key])
    return problems


def _count_problems(manifest: Manifest, row_count: int, live: set[int]) -> list[str]:
    problems = []
    if manifest.row_count != row_count:
        problems.append(f"the sheet counts {row_count} rows, its manifest {manifest.row_count}")
    strange = {no for part in manifest.parts for no in part.columns} - live
    if strange:
        problems.append(f"the manifest names {len(strange)} columns that the sheet does not have")
    return problems


def _rows_needed(manifest: Manifest) -> dict[str, int]:
    """Return how many rows each segment must have at least."""
    needed: dict[str, int] = {}
    for part in manifest.parts:
        for source in part.columns.values():
            if isinstance(source, Stored):
                key = source.segment.key
                needed[key] = max(needed.get(key, 0), source.start + part.offset + part.count)
    return needed
