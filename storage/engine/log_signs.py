"""Signs of logs with very many words: how their words begin, as hashes, in place of an index of them.

A picture in base64 has some 30,000 words a megabyte that nobody asks for: an index of them is as large as the
picture. What is written instead is a Parquet file with the columns `id` (of a log) and `signs` (hashes of the
beginnings of its words, in order). A sign that is missing rules a log out; one that is found says that its
texts must be looked at. Words that are shorter than any beginning that is kept say nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from storage.engine.data_root import DataRoot
from storage.engine.log_sql import quoted

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

# bytes of UTF-8: what begins a word begins its bytes
_LENGTHS = (4, 8)
# Fibonacci hashing to 26 bits: of 200,000 signs of a log one in 340 is there by chance
_FACTOR, _SHIFT = 0x9E37_79B9_7F4A_7C15, 38
_ROW_GROUP_LOGS = 16


def signs_of(words: Collection[str]) -> "np.ndarray":
    """The signs of folded words, each once and in order."""
    import numpy as np  # noqa: PLC0415

    # no word holds a line's end; numpy cuts after so many bytes, or fills up with zeros
    begun = np.array("\n".join(words).encode().split(b"\n"), f"S{_LENGTHS[-1]}")
    hashes = np.concatenate([_hashes(begun.astype(f"S{length}")) for length in _LENGTHS])
    hashes.sort()
    return hashes[np.flatnonzero(np.diff(hashes, prepend=-1))]


def _hashes(begun: "np.ndarray") -> "np.ndarray":
    import numpy as np  # noqa: PLC0415

    numbers = begun.view(f"<u{begun.dtype.itemsize}").astype(np.uint64)
    return (numbers * np.uint64(_FACTOR) >> np.uint64(_SHIFT)).astype(np.int32)


def write_signs(data: DataRoot, key: str, signs: Sequence[tuple[int, "np.ndarray"]]) -> int:
    """Write the signs of logs, by id, under a key; return the bytes of the file.

    Raises:
        Unavailable: the disk is full.
    """
    import pyarrow as pa  # noqa: PLC0415

    schema = pa.schema([("id", pa.int64()), ("signs", pa.list_(pa.int32()))])
    encodings = {"id": "DELTA_BINARY_PACKED", "signs.list.element": "DELTA_BINARY_PACKED"}
    with data.writing(key) as path:
        with index_file(path, schema, encodings) as writer:
            for start in range(0, len(signs), _ROW_GROUP_LOGS):
                some = signs[start : start + _ROW_GROUP_LOGS]
                columns = [pa.array([log_id for log_id, _ in some], pa.int64())]
                columns.append(pa.array([one for _, one in some], schema.field("signs").type))
                writer.write_table(pa.table(columns, schema=schema))
        return path.stat().st_size


def index_file(path: Path, schema: "pa.Schema", encodings: Mapping[str, str]) -> "pq.ParquetWriter":
    """Open a Parquet file for what is in order and hardly ever twice: differences instead of dictionaries."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    return pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=False, column_encoding=dict(encodings)
    )


def signs_query(paths: Sequence[str], words: Sequence[str]) -> tuple[str, list[int]]:
    """SELECT of the ids of logs that may hold each word, by the signs in some files, and its parameters."""
    files = ", ".join(quoted(path) for path in paths)
    signs = sorted({sign for word in words for sign in _signs_of_query(word.encode())})
    tests = " AND ".join(["list_contains(signs, ?)"] * len(signs)) or "true"
    return f"SELECT id FROM read_parquet([{files}]) WHERE {tests}", signs  # noqa: S608


def _signs_of_query(word: bytes) -> list[int]:
    import numpy as np  # noqa: PLC0415

    return [int(_hashes(np.array([word], f"S{n}"))[0]) for n in _LENGTHS if len(word) >= n]
