"""Reads fields of segments by row range: only the row groups asked for, footers kept in memory."""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from storage.domain.cells import CellStatus
from storage.domain.encodings import JSON_ENCODINGS, Encoding
from storage.domain.errors import Unavailable
from storage.domain.manifests import SegmentRef
from storage.domain.overlay import note_status
from storage.engine.data_root import DataRoot
from storage.engine.lru import Lru
from storage.engine.segments import STATUSES_KEY, field_name

_KEPT_FOOTER_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Footer:
    metadata: Any
    # first row of each group, and the number of rows at the end
    starts: tuple[int, ...]


@contextmanager
def _damage_told() -> Iterator[None]:
    """Tell a file that is missing or damaged.

    Raises:
        Unavailable: one could not be read.
    """
    import pyarrow as pa  # noqa: PLC0415

    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        raise Unavailable(
            "A file of the sheet is missing or damaged: the check `sheet_segments_are_whole` names it"
        ) from error


class SegmentReader:
    """Reads published segments of a data root; safe to share between threads."""

    def __init__(self, data: DataRoot) -> None:
        self._data = data
        self._footers: Lru[str, _Footer] = Lru(_KEPT_FOOTER_BYTES, _footer_bytes)

    @_damage_told()
    def read(self, segment: SegmentRef, fields: Sequence[int], start: int, count: int) -> list[list[Any]]:
        """Return `count` JSON values, from row `start` on, of each field.

        Raises:
            Unavailable: the file is missing or damaged.
        """
        import pyarrow.parquet as pq  # noqa: PLC0415

        path = self._data.path(segment.key)
        footer = self._footer(segment)
        wanted = [field_name(field) for field in fields]
        kept: dict[str, list[Any]] = {name: [] for name in wanted}
        with pq.ParquetFile(path, metadata=footer.metadata, pre_buffer=False) as file:
            first, last = _groups(footer, start, count)
            # one after the other: of long values a group may have many megabytes
            for group in range(first, last + 1):
                table = file.read_row_group(group, columns=list(kept), use_threads=False)
                begin = max(start - footer.starts[group], 0)
                rows = table.slice(begin, start + count - footer.starts[group] - begin)
                for name, held in kept.items():
                    held.extend(rows.column(name).to_pylist())
        return [
            _values(kept[name], segment.encodings[field]) for name, field in zip(wanted, fields, strict=True)
        ]

    @_damage_told()
    def read_arrow(self, segment: SegmentRef, fields: Sequence[int], start: int, count: int) -> Any:
        """Return the same rows as an Arrow table, as they are kept: JSON as text."""
        import pyarrow.parquet as pq  # noqa: PLC0415

        footer = self._footer(segment)
        first, last = _groups(footer, start, count)
        names = [field_name(field) for field in fields]
        with pq.ParquetFile(self._data.path(segment.key), metadata=footer.metadata, pre_buffer=False) as file:
            table = file.read_row_groups(list(range(first, last + 1)), columns=names, use_threads=False)
        return table.select(names).slice(start - footer.starts[first], count)

    def count_statuses(self, segment: SegmentRef, notes: int, start: int, count: int) -> Counter[CellStatus]:
        """Count cells by status as their notes say; the footer knows of all, and of some if all are alike."""
        footer = self._footer(segment)
        known = (footer.metadata.metadata or {}).get(STATUSES_KEY)
        of_all: Counter[CellStatus] = Counter({} if known is None else json.loads(known))
        if known is not None and (start, count) == (0, footer.starts[-1]):
            return of_all
        if len(of_all) == 1:
            return Counter(dict.fromkeys(of_all, count))
        import pyarrow.compute as pc  # noqa: PLC0415

        found: Counter[CellStatus] = Counter()
        for one in pc.value_counts(self.read_arrow(segment, [notes], start, count).column(0)).to_pylist():
            found[note_status(one["values"])] += one["counts"]
        return found

    def all_completed(self, segment: SegmentRef) -> bool:
        """Say whether a segment of results surely holds completed cells alone."""
        known = (self._footer(segment).metadata.metadata or {}).get(STATUSES_KEY)
        return known is not None and set(json.loads(known)) <= {"completed"}

    @_damage_told()
    def size(self, segment: SegmentRef, fields: Sequence[int], start: int, count: int) -> int:
        """Return about how many bytes such a read takes, from the footer alone."""
        footer = self._footer(segment)
        first, last = _groups(footer, start, count)
        total = 0.0
        for at in range(first, last + 1):
            group = footer.metadata.row_group(at)
            rows = min(start + count, footer.starts[at + 1]) - max(start, footer.starts[at])
            stored = sum(group.column(field).total_uncompressed_size for field in fields)
            total += stored * rows / group.num_rows
        return int(total)

    def _footer(self, segment: SegmentRef) -> _Footer:
        import pyarrow.parquet as pq  # noqa: PLC0415

        path = self._data.path(segment.key)
        return self._footers.get(segment.key, lambda: _read_footer(pq.read_metadata(path)))


def _groups(footer: _Footer, start: int, count: int) -> tuple[int, int]:
    """Return the first and the last row group that hold some of the rows."""
    return bisect_right(footer.starts, start) - 1, bisect_right(footer.starts, start + count - 1) - 1


def _read_footer(metadata: Any) -> _Footer:
    sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    return _Footer(metadata, tuple(accumulate(sizes, initial=0)))


def _footer_bytes(footer: _Footer) -> int:
    # what is kept is about twice what was read
    return 2 * int(footer.metadata.serialized_size)


def _values(kept: list[Any], encoding: Encoding) -> list[Any]:
    if encoding not in JSON_ENCODINGS:
        return kept
    return [None if value is None else json.loads(value) for value in kept]
