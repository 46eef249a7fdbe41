"""Files of the spool turned into segments: the part of an import that takes long and publishes nothing."""

from collections.abc import Callable
from contextlib import closing

from storage.domain.file_imports import find_file_format
from storage.domain.imports import Imported, ImportTarget, file_name_of
from storage.domain.operations import Operation
from storage.domain.uploads import upload_of
from storage.engine.csv_import import csv_tables
from storage.engine.json_import import json_batches
from storage.engine.read_ahead import read_ahead
from storage.engine.segment_sink import SegmentSink
from storage.store import Store
from storage.uploads import get_upload_path

Report = Callable[[float, int], None]
"""Called with the share read (0 to 1) and the rows read after each piece; may raise to stop."""


def write_file(store: Store, operation: Operation, target: ImportTarget, report: Report) -> Imported:
    """Read the upload of an import and write its rows as segments of the sheet, to be committed.

    When it raises, or `report` does, no segment is left.

    Raises:
        ImportRefused: the file breaks a rule; the message is for the client.
        NotFound: the upload was swept.
        Unavailable: the disk is full.
    """
    path = get_upload_path(store, upload_of(operation.spec["upload"]))
    with SegmentSink(store.data, target.sheet_id, store.new_id) as sink:
        if find_file_format(file_name_of(operation)) == "csv":
            with csv_tables(path) as table_file, closing(read_ahead(table_file)) as tables:
                for table in tables:
                    sink.write(table.num_rows, table.columns, ["text"] * table.num_columns)
                    report(table_file.offset / table_file.size, sink.rows)
                titles = table_file.titles
        else:
            with json_batches(path) as json_file, closing(read_ahead(json_file)) as batches:
                for batch in batches:
                    sink.write(batch.rows, batch.arrays, batch.encodings)
                    report(json_file.offset / json_file.size, sink.rows)
                titles = json_file.titles
    message = f"{sink.rows} rows imported from {file_name_of(operation)}"
    return Imported(titles, sink.rows, tuple(sink.segments), message)


def discard_segments(store: Store, imported: Imported) -> None:
    """Remove the segments of an import that will not be committed."""
    for segment in imported.segments:
        store.data.remove(segment.key)
