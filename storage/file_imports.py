"""Files of the spool turned into segments: the part of an import that takes long and publishes nothing."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from storage.domain.file_imports import find_file_format
from storage.domain.imports import Imported, ImportTarget, file_name_of
from storage.domain.operations import Operation
from storage.domain.uploads import upload_of
from storage.engine.csv_import import csv_tables
from storage.engine.csv_stretches import count_stretches, write_stretches
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
        write = _write_csv if find_file_format(file_name_of(operation)) == "csv" else _write_json
        titles = write(path, sink, report)
    message = f"{sink.rows} rows imported from {file_name_of(operation)}"
    return Imported(titles, sink.rows, tuple(sink.segments), message)


def _write_csv(path: Path, sink: SegmentSink, report: Report) -> tuple[str, ...]:
    with csv_tables(path) as file:
        count = count_stretches(file)
        if count > 1:
            write_stretches(file, sink, count, lambda read, rows: report(read / file.size, rows))
            return file.titles
        with closing(read_ahead(file)) as tables:
            for table in tables:
                sink.write(table.num_rows, table.columns, ["text"] * table.num_columns)
                report(file.offset / file.size, sink.rows)
        return file.titles


def _write_json(path: Path, sink: SegmentSink, report: Report) -> tuple[str, ...]:
    with json_batches(path) as file, closing(read_ahead(file)) as batches:
        for batch in batches:
            sink.write(batch.rows, batch.arrays, batch.encodings)
            report(file.offset / file.size, sink.rows)
        return file.titles


def discard_segments(store: Store, imported: Imported) -> None:
    """Remove the segments of an import that will not be committed."""
    for segment in imported.segments:
        store.data.remove(segment.key)
