"""Segments: immutable Parquet files of a sheet, written whole and described by what was published.

Fields are named c0, c1, ... by place: which column a field belongs to is settled at commit, in the
manifest. pyarrow is imported at first use: it is slow to start and must not be carried over a fork.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from storage.domain.encodings import Encoding
from storage.domain.imports import ImportedField, ImportedSegment
from storage.engine.data_root import DataRoot, file_sha256

FOLDER = "sheets"
ROWS_PER_GROUP = 4_096
"""A cell costs the decoding of one column of one group, a page that of all: 3 ms for ten, at 16,384 13 ms."""
FIELDS_PER_SEGMENT = 64
COMPRESSION = "zstd"
STATUSES_KEY = b"cell_statuses"
"""Where the footer of computed results keeps how many cells have which status, as JSON."""


def segment_key(sheet_id: UUID, segment_id: UUID) -> str:
    return f"{FOLDER}/{sheet_id}/{segment_id}.parquet"


def segment_id_of(key: str) -> UUID:
    return UUID(Path(key).stem)


def field_name(at: int) -> str:
    return f"c{at}"


@contextmanager
def writing_segment(data: DataRoot, key: str) -> Iterator[Path]:
    """Yield a temporary path to write Parquet to; publish it under the key when the block ends well.

    Raises:
        Unavailable: the disk is full; nothing was published.
    """
    with data.writing(key) as path:
        yield path


def write_segment(
    data: DataRoot, key: str, first_row: int, columns: Sequence[tuple[int, Encoding, Sequence[Any]]]
) -> ImportedSegment:
    """Write columns of JSON values, each (position, encoding, values), as one segment."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    from storage.engine.arrow_values import arrow_array  # noqa: PLC0415

    names = [field_name(at) for at in range(len(columns))]
    arrays = [arrow_array(values, encoding) for _, encoding, values in columns]
    with writing_segment(data, key) as path:
        pq.write_table(
            pa.Table.from_arrays(arrays, names=names),
            path,
            row_group_size=ROWS_PER_GROUP,
            compression=COMPRESSION,
            write_statistics=False,
            use_dictionary=False,
        )
    fields = [ImportedField(position, encoding) for position, encoding, _ in columns]
    return describe_segment(data, key, first_row, fields)


def describe_segment(
    data: DataRoot, key: str, first_row: int, fields: Sequence[ImportedField]
) -> ImportedSegment:
    """Describe a published file whose fields c0, c1, ... are `fields`, from its footer and its bytes.

    Raises:
        ValueError: the file's fields are not those.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    path = data.path(key)
    footer = pq.read_metadata(path)
    names = [field_name(at) for at in range(len(fields))]
    if footer.schema.names != names:
        raise ValueError(f"{key} has the fields {footer.schema.names}, not {names}")
    return ImportedSegment(
        key=key,
        rows=footer.num_rows,
        bytes=path.stat().st_size,
        sha256=file_sha256(path),
        first_row=first_row,
        fields=tuple(fields),
    )
