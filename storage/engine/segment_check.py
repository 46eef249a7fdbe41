"""Compares one segment's file with what the catalog and a manifest say of it."""

from storage.domain.manifests import SegmentRef
from storage.engine.data_root import DataRoot, file_sha256
from storage.engine.rows.segments import SegmentRow
from storage.engine.segments import field_name


def segment_problems(data: DataRoot, known: SegmentRow, segment: SegmentRef, rows_needed: int) -> list[str]:
    """Return what is wrong with a segment, a sentence each; its footer is read afresh."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    key, path = known.key, data.path(known.key)
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return [f"{key}: the file is missing"]
    if size != known.bytes:
        return [f"{key}: the file has {size} bytes, {known.bytes} were published"]
    if file_sha256(path) != known.sha256:
        return [f"{key}: the bytes are not those that were published"]
    try:
        footer = pq.read_metadata(path)
    except (OSError, pa.ArrowInvalid) as error:
        return [f"{key}: the footer cannot be read ({type(error).__name__})"]
    problems = []
    if footer.num_rows != known.rows or footer.num_rows < rows_needed:
        problems.append(f"{key}: {footer.num_rows} rows, {max(known.rows, rows_needed)} are needed")
    if footer.schema.names != [field_name(at) for at in range(len(segment.encodings))]:
        problems.append(f"{key}: the fields are {footer.schema.names}")
    if list(segment.encodings) != known.encodings:
        problems.append(f"{key}: the manifest reads it as {segment.encodings}, written {known.encodings}")
    return problems
