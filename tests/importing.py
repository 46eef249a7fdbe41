"""Imports by hand, as a run does them: start, claim, write segments, commit."""

from collections.abc import Sequence
from typing import Any

from storage.domain.encodings import encoding_of
from storage.domain.imports import Imported, ImportedSegment, NewSheet, Started
from storage.domain.keys import Principal
from storage.domain.operations import Operation
from storage.domain.sheets import Sheet
from storage.engine.segments import segment_key, write_segment
from storage.import_commit import commit_import
from storage.imports import get_import_target, start_file_import
from storage.operations import claim
from storage.store import Store


def start(store: Store, who: Principal, table_id: Any, target: Any = None, **changes: Any) -> Started:
    options: dict[str, Any] = {
        "operation_id": None,
        "request_hash": "0" * 64,
        "spec": {"file_name": "people.csv"},
    } | changes
    return start_file_import(store, who, table_id=table_id, target=target or NewSheet("People"), **options)


def segment(
    store: Store, sheet_id: Any, first_row: int, columns: dict[int, Sequence[Any]]
) -> ImportedSegment:
    fields = [(position, encoding_of(values), values) for position, values in columns.items()]
    return write_segment(store.data, segment_key(sheet_id, store.new_id()), first_row, fields)


def import_rows(
    store: Store, operation: Operation, titles: Sequence[str], rows: Sequence[Sequence[Any]]
) -> Sheet:
    """Do what a run does: claim, write, commit."""
    claimed = claim(store, operation.no, operation.attempt, "run-1")
    columns = {at: [row[at] for row in rows] for at in range(len(titles))}
    files = (segment(store, get_import_target(store, claimed).sheet_id, 0, columns),) if rows else ()
    return commit_import(store, claimed, Imported(tuple(titles), len(rows), files))


def imported_sheet(
    store: Store, who: Principal, table_id: Any, titles: Sequence[str], rows: Sequence[Sequence[Any]]
) -> Sheet:
    """Make a sheet with rows."""
    return import_rows(store, start(store, who, table_id).operation, titles, rows)
